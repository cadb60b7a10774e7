import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.event.Event;
import io.siddhi.core.stream.input.InputHandler;
import io.siddhi.core.stream.output.StreamCallback;
import java.util.HashMap;
import java.util.Map;

/**
 * Siddhi: `siddhi/QUERY.siddhi` over streams A to T, one thread, its clock set by the times of the events (playback).
 *
 * <p>Matches come on the stream `Match`, as the times of their events. Parsing and starting are not timed. A last event of
 * a type that no query has sets the clock on, so that what waits is decided.
 */
public final class SiddhiPeer {
    public static void main(String[] arguments) throws Exception {
        Driver driver = new Driver(arguments);
        StringBuilder streams = new StringBuilder("@app:playback ");
        for (char type = 'A'; type <= 'T'; type++) {
            streams.append("define stream " + type + " (ts long, id int, attr1 int, attr2 int); ");
        }
        String application = streams + driver.text();
        Object[][] rows = new Object[Driver.events.length][];
        for (int row = 0; row < rows.length; row++) {
            var event = Driver.events[row];
            rows[row] = new Object[] {event.ts, event.id, event.attr1, event.attr2};
        }
        driver.serve(() -> run(application, rows, driver.window));
    }

    private static double run(String application, Object[][] rows, long window) throws Exception {
        SiddhiManager manager = new SiddhiManager();
        SiddhiAppRuntime runtime = manager.createSiddhiAppRuntime(application);
        runtime.addCallback("Match", new StreamCallback() {
            @Override
            public void receive(Event[] matches) {
                for (Event match : matches) {
                    long sum = 0;
                    Object[] times = match.getData();
                    for (int place = 0; place < times.length; place++) {
                        sum += (place + 1) * (Long) times[place];
                    }
                    Driver.MATCHES.increment();
                    Driver.CHECKSUM.add(sum);
                }
            }
        });
        runtime.start();
        Map<String, InputHandler> handlers = new HashMap<>();
        for (char type = 'A'; type <= 'T'; type++) {
            handlers.put(String.valueOf(type), runtime.getInputHandler(String.valueOf(type)));
        }
        long begin = System.nanoTime();
        for (int row = 0; row < rows.length; row++) {
            var event = Driver.events[row];
            handlers.get(event.type).send(event.ts, rows[row]);
        }
        long end = Driver.events[rows.length - 1].ts + 3 * window;
        handlers.get("T").send(end, new Object[] {end, -1, 0, 0});
        double seconds = (System.nanoTime() - begin) / 1e9;
        manager.shutdown();
        return seconds;
    }
}
