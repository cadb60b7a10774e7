import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.LongAdder;

/**
 * What the peers on the Java machine share: the events in memory, the sums of the matches, and the talk on standard
 * input and output: one line in, one run of the query, one line of JSON out.
 *
 * <p>Arguments: the name of the query, the file with its text, the events, the window, the parallelism.
 */
public final class Driver {
    /** One run of the query over all events: the seconds that it took. */
    public interface Run {
        double seconds() throws Exception;
    }

    public static Event[] events;
    public static final LongAdder MATCHES = new LongAdder();
    public static final LongAdder CHECKSUM = new LongAdder();

    public final String query;
    public final Path file;
    public final long window;
    public final int parallelism;
    private final PrintStream output = System.out;

    public Driver(String[] arguments) throws IOException {
        System.setOut(System.err);  // what a library prints is no answer of ours
        query = arguments[0];
        file = Path.of(arguments[1]);
        events = read(Path.of(arguments[2]));
        window = Long.parseLong(arguments[3]);
        parallelism = Integer.parseInt(arguments[4]);
    }

    /** The text of the query with its window; `{past}` is the first time beyond it (`{seconds}` in them), `{twice}` that beyond two. */
    public String text() throws IOException {
        return Files.readString(file)
                .replaceAll("(?m)^\\s*--.*\\R", "")
                .replace("{window}", Long.toString(window))
                .replace("{seconds}", String.format("%.3f", (window + 1) / 1000.0))
                .replace("{past}", Long.toString(window + 1))
                .replace("{twice}", Long.toString(2 * window + 2));
    }

    /** A match: the times of its events in the order of the variables, which count once, twice and so on. */
    public static void take(long... times) {
        long sum = 0;
        for (int place = 0; place < times.length; place++) {
            sum += (place + 1) * times[place];
        }
        MATCHES.increment();
        CHECKSUM.add(sum);
    }

    /** Run once for each line of standard input. */
    public void serve(Run run) throws Exception {
        output.println("{\"ready\": true}");
        output.flush();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        while (lines.readLine() != null) {
            MATCHES.reset();
            CHECKSUM.reset();
            double seconds = run.seconds();
            output.printf(
                    "{\"seconds\": %.6f, \"matches\": %d, \"checksum\": %d}%n",
                    seconds, MATCHES.sum(), CHECKSUM.sum());
            output.flush();
        }
        System.exit(0);  // some of the peers keep threads
    }

    /** Columns one after the other, little endian: times, types as numbers from A on, ids and two attributes. */
    private static Event[] read(Path path) throws IOException {
        try (FileChannel channel = FileChannel.open(path)) {
            ByteBuffer bytes = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
            bytes.order(ByteOrder.LITTLE_ENDIAN);
            Event[] found = new Event[(int) (channel.size() / 21)];
            for (int row = 0; row < found.length; row++) {
                found[row] = new Event();
                found[row].ts = bytes.getLong();
            }
            for (Event event : found) {
                event.type = String.valueOf((char) ('A' + bytes.get())).intern();
            }
            for (Event event : found) {
                event.id = bytes.getInt();
            }
            for (Event event : found) {
                event.attr1 = bytes.getInt();
            }
            for (Event event : found) {
                event.attr2 = bytes.getInt();
            }
            return found;
        }
    }
}
