import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readTracePosition } from "../../../src/operations/traces/export-traces.ts"
import { spanCollector } from "../../kit/collector.ts"
import { endpoint, eventually, nth, publish } from "../../kit/engine.ts"
import { receiver } from "../../kit/receiver.ts"
import { installations } from "../command-line.ts"
import { run } from "../in-process.ts"
import { start } from "../running.ts"

const place = installations()

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
const traceparent = `00-${traceId}-00f067aa0ba902b7-01`

describe("petrel worker --traces and petrel console --traces-otlp", () => {
  it.live("export what receivers are told, also when the console that exported is killed", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const { requests, url } = yield* receiver()
        const collector = yield* spanCollector()
        yield* endpoint({ url })
        const worker = yield* start(
          ...["worker", "--traces", "sampled", "--allow-network", "127.0.0.0/8", ...flags]
        )
        const startConsole = start(
          ...["console", "--roles", "api", "--listen", "127.0.0.1:0"],
          ...["--traces-otlp", collector.url, ...flags]
        )
        const first = yield* startConsole
        yield* worker.until((out) => out.length > 1)
        yield* eventually(readTracePosition, ({ position }) => position !== undefined)
        yield* publish("paid", "{}", { traceparent })
        const spans = yield* collector.different(2)
        const attempt = spans.find(({ name }) => name === "POST")
        assert.strictEqual(
          nth(requests, 0).headers.traceparent,
          `00-${traceId}-${attempt?.spanId}-01`
        )
        const second = yield* startConsole
        yield* second.until((out) => out.length > 0)
        yield* first.signal("SIGKILL")
        yield* first.ended
        yield* publish("paid", "{}", { traceparent })
        // It goes on when the lease has expired.
        yield* collector.different(4)
        yield* second.signal("SIGTERM")
        assert.strictEqual(yield* second.ended, 0)
      })
    )
  })

  const refusals: ReadonlyArray<readonly [command: string, flag: string, value: string, RegExp]> = [
    ["worker", "--traces", "yes", /--traces "yes" must be off or sampled/],
    ["dev", "--traces", "all", /--traces "all" must be off or sampled/],
    ["console", "--traces-otlp", "127.0.0.1:4318", /must be the URL of a collector/],
    ["dev", "--traces-otlp", "nowhere", /must be the URL of a collector/]
  ]
  it.live.each(refusals)("refuse %s %s %s", ([command, flag, value, problem]) =>
    Effect.gen(function* () {
      const { code, err } = yield* run(command, flag, value)
      assert.strictEqual(code, 2)
      assert.match(err.join(" "), problem)
    })
  )
})
