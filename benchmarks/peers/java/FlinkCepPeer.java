import java.util.List;
import java.util.Map;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/** Flink CEP by its Java interface: the patterns of a query over the events keyed by id, all in event time. */
public final class FlinkCepPeer {
    /** Sums up the matches: of a repeated event the last, and none whose name begins with `_`. */
    public static final class Take extends PatternProcessFunction<Event, Long> {
        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<Long> output) {
            long sum = 0;
            for (Map.Entry<String, List<Event>> entry : match.entrySet()) {
                if (entry.getKey().charAt(0) != '_') {
                    List<Event> events = entry.getValue();
                    sum += (entry.getKey().charAt(0) - 'a' + 1) * events.get(events.size() - 1).ts;
                }
            }
            Driver.MATCHES.increment();
            Driver.CHECKSUM.add(sum);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Driver driver = new Driver(arguments);
        boolean keyed = !driver.query.startsWith("unkeyed");
        driver.serve(() -> FlinkJob.seconds(driver.parallelism, (environment, events) -> {
            DataStream<Event> input = keyed ? events.keyBy(event -> event.id) : events;
            for (Pattern<Event, ?> pattern : FlinkPatterns.of(driver.query, driver.window)) {
                CEP.pattern(input, pattern).process(new Take()).sinkTo(new DiscardingSink<>());
            }
        }));
    }
}
