import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * A job on a cluster within this process: the events from memory in the order of their times, object reuse, the state on
 * the heap, no checkpoints.
 *
 * <p>Starting a job is no part of matching: the time of a run is that from the first event to the end of the job.
 */
public final class FlinkJob {
    private static volatile long begin;

    /** Takes the number of an event, gives the event. */
    public static final class Lookup implements MapFunction<Long, Event> {
        @Override
        public Event map(Long row) {
            if (row == 0) {
                begin = System.nanoTime();
            }
            return Driver.events[row.intValue()];
        }
    }

    /** What a query adds to the job. */
    public interface Query {
        void add(StreamExecutionEnvironment environment, DataStream<Event> events) throws Exception;
    }

    /** The seconds that a query takes. */
    public static double seconds(int parallelism, Query query) throws Exception {
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.createLocalEnvironment(parallelism, new Configuration());
        environment.getConfig().enableObjectReuse();
        DataStream<Event> events = environment
                .fromSource(
                        new NumberSequenceSource(0, Driver.events.length - 1),
                        WatermarkStrategy.noWatermarks(),
                        "events")
                .setParallelism(1)
                .map(new Lookup())
                .setParallelism(1)
                .assignTimestampsAndWatermarks(WatermarkStrategy.<Event>forMonotonousTimestamps()
                        .withTimestampAssigner((event, before) -> event.ts))
                .setParallelism(1);
        query.add(environment, events);
        environment.execute();
        return (System.nanoTime() - begin) / 1e9;
    }
}
