/** One event of the generated data: fields that every peer reads, in the form that its documentation asks for. */
public class Event {
    public long ts;
    public String type;
    public int id;
    public int attr1;
    public int attr2;

    public Event() {}  // Flink's serializer of plain objects makes them empty

    public long getTs() {
        return ts;
    }

    public String getType() {
        return type;
    }

    public int getId() {
        return id;
    }

    public int getAttr1() {
        return attr1;
    }

    public int getAttr2() {
        return attr2;
    }
}
