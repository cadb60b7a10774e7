import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.api.common.functions.MapFunction;

/** Flink SQL: `flinksql/QUERY.sql` over the table `events`, whose time attribute is `rowtime`. Planning is not timed. */
public final class FlinkSqlPeer {
    /** Sums up the rows: columns of times, in the order of the variables. */
    public static final class Take implements MapFunction<Row, Row> {
        @Override
        public Row map(Row row) {
            long sum = 0;
            for (int place = 0; place < row.getArity(); place++) {
                sum += (place + 1) * (Long) row.getField(place);
            }
            Driver.MATCHES.increment();
            Driver.CHECKSUM.add(sum);
            return row;
        }
    }

    public static void main(String[] arguments) throws Exception {
        Driver driver = new Driver(arguments);
        String text = driver.text();
        driver.serve(() -> FlinkJob.seconds(driver.parallelism, (environment, events) -> {
            StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
            Schema schema = Schema.newBuilder()
                    .column("ts", "BIGINT")
                    .column("type", "STRING")
                    .column("id", "INT")
                    .columnByMetadata("rowtime", "TIMESTAMP_LTZ(3)")
                    .watermark("rowtime", "SOURCE_WATERMARK()")
                    .build();
            tables.createTemporaryView("events", events, schema);
            Table matches = tables.sqlQuery(text);
            tables.toDataStream(matches).map(new Take()).sinkTo(new DiscardingSink<>());
        }));
    }
}
