import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;

/**
 * The queries as patterns of Flink CEP. What a user writes for a query lies between `case` and its `yield`; the helpers
 * at the end are theirs too, but counted nowhere.
 */
public final class FlinkPatterns {
    /** The patterns of a query, which have all its matches together. Windows are exclusive in Flink, so one is added. */
    public static List<Pattern<Event, ?>> of(String query, long window) {
        Duration within = Duration.ofMillis(window + 1);
        return switch (query) {
            case "two":
                yield List.of(Pattern.<Event>begin("a").where(is("A"))
                        .followedByAny("b").where(is("B"))
                        .within(within));
            case "flat", "unkeyed-3":
                yield List.of(Pattern.<Event>begin("a").where(is("A"))
                        .followedByAny("b").where(is("B"))
                        .followedByAny("c").where(is("C"))
                        .within(within));
            case "six":
                yield List.of(Pattern.<Event>begin("a").where(is("A"))
                        .followedByAny("b").where(is("B"))
                        .followedByAny("c").where(is("C"))
                        .followedByAny("d").where(is("D"))
                        .followedByAny("e").where(is("E"))
                        .followedByAny("f").where(is("F"))
                        .within(within));
            case "not-event":
                yield List.of(Pattern.<Event>begin("a").where(is("A"))
                        .followedByAny("b").where(is("B"))
                        .notFollowedBy("no d").where(is("D"))
                        .followedByAny("c").where(is("C"))
                        .within(within));
            case "trailing":
                yield List.of(Pattern.<Event>begin("a").where(is("A"))
                        .followedByAny("b").where(is("B"))
                        .followedByAny("c").where(is("C"))
                        .notFollowedBy("no d").where(is("D"))
                        .within(within));
            case "and":  // every order is a pattern of its own
                List<Pattern<Event, ?>> orders = new ArrayList<>();
                for (String order : List.of("abc", "acb", "bac", "bca", "cab", "cba")) {
                    String[] names = order.split("");
                    orders.add(Pattern.<Event>begin(names[0]).where(is(names[0].toUpperCase()))
                            .followedByAny(names[1]).where(is(names[1].toUpperCase()))
                            .followedByAny(names[2]).where(is(names[2].toUpperCase()))
                            .within(within));
                }
                yield orders;
            case "group":  // three b are enough; the first letter of a name says where the match shows it, `_` nowhere
                yield List.of(Pattern.<Event>begin("a").where(is("A"))
                        .followedBy("_b").where(is("B")).times(3)
                        .followedByAny("b = c").where(is("C"))
                        .within(within));
            case "tenth":
                yield List.of(Pattern.<Event>begin("a").where(is("A")).times(10)
                        .within(within));
            case "first-per":
                yield List.of(Pattern.<Event>begin("a").where(is("A"))
                        .followedBy("_b").where(is("B"))
                        .followedBy("b = c").where(is("C"))
                        .within(within));
            default:
                throw new IllegalArgumentException("Flink CEP has no pattern for " + query);
        };
    }

    private static SimpleCondition<Event> is(String type) {
        return SimpleCondition.of(event -> event.type.equals(type));
    }
}
