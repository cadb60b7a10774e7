import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.EventBean;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPDeployment;
import com.espertech.esper.runtime.client.EPEventService;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;

/**
 * Esper: `esper/QUERY.epl` over event types A to T, one thread, its clock set by the times of the events.
 *
 * <p>Compiling and deploying are not timed. At the end the clock goes on by two windows, so that what waits is decided.
 */
public final class EsperPeer {
    public static void main(String[] arguments) throws Exception {
        Driver driver = new Driver(arguments);
        Configuration configuration = new Configuration();
        for (char type = 'A'; type <= 'T'; type++) {
            configuration.getCommon().addEventType(String.valueOf(type), Event.class);
        }
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        EPCompiled compiled =
                EPCompilerProvider.getCompiler().compile(driver.text(), new CompilerArguments(configuration));
        EPRuntime runtime = EPRuntimeProvider.getRuntime("peer", configuration);
        driver.serve(() -> run(runtime, compiled, driver.window));
    }

    private static double run(EPRuntime runtime, EPCompiled compiled, long window) throws Exception {
        runtime.initialize();
        EPEventService service = runtime.getEventService();
        service.clockExternal();
        service.advanceTime(0);
        EPDeployment deployment = runtime.getDeploymentService().deploy(compiled);
        EPStatement statement = deployment.getStatements()[deployment.getStatements().length - 1];
        String[] names = statement.getEventType().getPropertyNames();
        statement.addListener((rows, old, from, at) -> {
            for (EventBean row : rows) {
                long[] times = new long[names.length];
                for (int place = 0; place < names.length; place++) {
                    Object shown = row.get(names[place]);
                    times[place] = shown instanceof Event event ? event.ts : ((Number) shown).longValue();
                }
                Driver.take(times);
            }
        });
        long begin = System.nanoTime();
        for (Event event : Driver.events) {
            service.advanceTime(event.ts);
            service.sendEventBean(event, event.type);
        }
        service.advanceTime(Driver.events[Driver.events.length - 1].ts + 2 * window);
        double seconds = (System.nanoTime() - begin) / 1e9;
        runtime.getDeploymentService().undeployAll();
        return seconds;
    }
}
