package benchmarks;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.streaming.api.functions.async.ResultFuture;
import org.apache.flink.streaming.api.functions.async.RichAsyncFunction;

/**
 * Puts an answer into each row of JSON: a service's, to which some of the row's fields are sent by HTTP, or without a
 * URL those fields themselves, after a while. Where there is no answer the row gets an error, and the job goes on.
 */
public final class FlinkAsks extends RichAsyncFunction<String, String> {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final String url;
    private final long millis;
    private final List<String> fields;
    private transient HttpClient client;
    private transient ScheduledExecutorService timer;

    public FlinkAsks(String url, long millis, List<String> fields) {
        this.url = url;
        this.millis = millis;
        this.fields = fields;
    }

    @Override
    public void open(OpenContext context) {
        client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        timer = Executors.newSingleThreadScheduledExecutor();
    }

    @Override
    public void close() {
        if (timer != null) {
            timer.shutdownNow();
        }
    }

    @Override
    public void asyncInvoke(String record, ResultFuture<String> result) {
        ObjectNode row = (ObjectNode) parse(record);
        ask(row.deepCopy().retain(fields).toString())
                .thenApply(answer -> row.<ObjectNode>set("answer", parse(answer)))
                .exceptionally(error -> row.put("error", error.toString()))
                .thenAccept(answered -> result.complete(List.of(answered.toString())));
    }

    @Override
    public void timeout(String record, ResultFuture<String> result) {
        ObjectNode row = (ObjectNode) parse(record);
        result.complete(List.of(row.put("error", "no answer in time").toString()));
    }

    private CompletableFuture<String> ask(String request) {
        if (url.isEmpty()) {
            CompletableFuture<String> answer = new CompletableFuture<>();
            timer.schedule(() -> answer.complete(request), millis, TimeUnit.MILLISECONDS);
            return answer;
        }
        HttpRequest call = HttpRequest.newBuilder(URI.create(url))
                .header("Content-Type", "application/json")
                .POST(BodyPublishers.ofString(request))
                .build();
        return client.sendAsync(call, BodyHandlers.ofString()).thenApply(answer -> {
            if (answer.statusCode() != 200) {
                throw new IllegalStateException("HTTP " + answer.statusCode());
            }
            return answer.body();
        });
    }

    private static JsonNode parse(String text) {
        try {
            return JSON.readTree(text);
        } catch (JsonProcessingException error) {
            throw new CompletionException(error);
        }
    }
}
