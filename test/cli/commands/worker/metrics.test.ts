import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { endpoint, eventually, nth, publishMany } from "../../../kit/engine.ts"
import { receiver } from "../../../kit/receiver.ts"
import { installations, parse } from "../../command-line.ts"
import { run } from "../../in-process.ts"
import { start } from "../../running.ts"

const place = installations()

const read = (url: string) =>
  Effect.promise(async () => {
    const response = await fetch(url)
    return { status: response.status, text: await response.text() }
  })

describe("petrel worker --metrics and --otlp", () => {
  it.live("serves what it counts, pushes the same, and says where", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const takes = yield* receiver()
        const collector = yield* receiver({ answer: { body: "{}" } })
        yield* endpoint({ url: takes.url })
        const worker = yield* start(
          ...["worker", "--id", "w1", "--metrics", "127.0.0.1:0", "--otlp", collector.url],
          ...["--allow-network", "127.0.0.0/8", "--json", ...flags]
        )
        yield* worker.until((out) => out.length > 1)
        const { metrics } = parse(nth(worker.out, 0))
        const url = String(metrics)
        assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/metrics$/)
        yield* publishMany(3)
        yield* eventually(read(url), ({ text }) =>
          text.includes('petrel_deliveries_ended_total{end="delivered",reason=""} 3\n')
        )
        const { text } = yield* read(url)
        assert.include(text, 'petrel_build_info{version="0.1.0",worker="w1"} 1\n')
        assert.include(text, "petrel_ready 1\n")
        assert.include(text, "petrel_partitions_owned 2\n")
        assert.match(text, /^process_cpu_seconds_total \d/m)
        const base = url.replace(/\/metrics$/, "")
        assert.deepStrictEqual(yield* read(`${base}/healthz`), { status: 200, text: "alive\n" })
        assert.deepStrictEqual(yield* read(`${base}/readyz`), { status: 200, text: "ready\n" })

        const { host } = new URL(url)
        const again = yield* run("worker", "--id", "w2", "--metrics", host, ...flags)
        assert.strictEqual(again.code, 1)
        assert.deepStrictEqual(again.err, [
          `petrel: --metrics: ${host} is in use: stop what listens there, or choose another port`
        ])
        // The last export comes at a stop.
        yield* worker.signal("SIGTERM")
        assert.strictEqual(yield* worker.ended, 0)
        yield* collector.received(1)
        const last = String(collector.requests.at(-1)?.body)
        assert.include(last, '"name":"petrel.deliveries.ended"')
        assert.include(last, '{"key":"service.instance.id","value":{"stringValue":"w1"}}')
      })
    )
  })

  const refusals: ReadonlyArray<readonly [flag: string, value: string, problem: string]> = [
    ["--metrics", "9464", "must be an address and a port, such as 127.0.0.1:9464"],
    ["--metrics", "127.0.0.1:99999", "must be an address and a port"],
    ["--otlp", "127.0.0.1:4318", "must be the URL of a collector"],
    ["--metrics-labels", "endpoint", "must be tenant"]
  ]
  it.live.each(refusals)("refuses %s %s", ([flag, value, problem]) =>
    Effect.gen(function* () {
      const { code, err } = yield* run("worker", flag, value)
      assert.strictEqual(code, 2)
      assert.include(err.join(" "), problem)
    })
  )
})
