import { spawn } from "node:child_process"
import { once } from "node:events"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Webhook } from "standardwebhooks"
import { listWorkers } from "../../../../src/operations/status/workers.ts"
import { endpoint, eventually, history, nth, publish } from "../../../kit/engine.ts"
import { latency, receiver } from "../../../kit/receiver.ts"
import { installations, parse, program } from "../../command-line.ts"
import { run } from "../../in-process.ts"
import { start, startNode } from "../../running.ts"

const place = installations()

describe("petrel worker", () => {
  it.live(
    "delivers what is published, shares with the next one, and leaves it all in the end",
    () => {
      const { flags, run: installed } = place()
      return installed(
        Effect.gen(function* () {
          const { received, requests, url } = yield* receiver()
          const added = yield* run("endpoint", "add", "acme/hook", "--url", url, "--json", ...flags)
          const options = ["--allow-network", "127.0.0.0/8", "--json", ...flags]
          const first = yield* start("worker", "--id", "w1", ...options)
          yield* first.until((out) => out.length > 1)
          assert.deepStrictEqual(
            first.out.map((line) => parse(line)),
            [
              { event: "ready", worker: "w1", roles: ["router", "deliver"] },
              { event: "delivering", worker: "w1", partitions: [0, 1] }
            ]
          )
          const second = yield* start("worker", "--id", "w2", ...options)
          yield* second.until((out) => out.length > 1)
          const { partitions: share } = parse(nth(second.out, 1))
          assert.include(["[0]", "[1]"], JSON.stringify(share))

          const { out } = yield* run("publish", "acme", "invoice.paid", '{"total":42}', ...flags)
          yield* received(1)
          const request = nth(requests, 0)
          assert.strictEqual(request.headers["webhook-id"], nth(out, 0))
          new Webhook(String(parse(nth(added.out, 0)).secret)).verify(
            request.body.toString(),
            request.headers as Record<string, string>
          )

          yield* first.signal("SIGTERM")
          assert.strictEqual(yield* first.ended, 0)
          yield* eventually(listWorkers, ({ workers }) =>
            workers.every(
              ({ partitions }) => partitions.filter((one) => one.delivering).length === 2
            )
          )
          const left = yield* run("workers", "--json", ...flags)
          assert.lengthOf(left.out, 1)
          const { partitions, worker } = parse(nth(left.out, 0))
          assert.strictEqual(worker, "w2")
          assert.deepStrictEqual(
            partitions,
            [0, 1].map((partition) => ({
              partition,
              delivering: true,
              inFlight: 0,
              inMemory: 0
            }))
          )
          yield* second.signal("SIGINT")
          assert.strictEqual(yield* second.ended, 0)
        })
      )
    }
  )

  it.live("refuses the id of one that is running, and says which that is", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const first = yield* start("worker", "--id", "w1", ...flags)
        yield* first.until((out) => out.length > 0)
        const { code, err, out } = yield* run(
          "worker",
          "--id",
          "w1",
          "--log-level",
          "error",
          ...flags
        )
        assert.strictEqual(code, 1)
        assert.deepStrictEqual(out, [])
        assert.lengthOf(err, 1)
        assert.match(
          nth(err, 0),
          /^petrel: a worker named w1 is running already \(on .+, process \d+\)/
        )
        assert.include(nth(err, 0), "--id")
      })
    )
  })

  it.live("finishes what is in flight when it is told to stop", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        let release = () => {}
        const asked = new Promise<void>((resolve) => {
          release = resolve
        })
        const { received, requests, url } = yield* receiver({
          answer: async () => {
            await asked
            return { status: 204 }
          }
        })
        yield* endpoint({ url })
        const facts = yield* history
        const worker = yield* start("worker", "--allow-network", "127.0.0.0/8", ...flags)
        yield* worker.until((out) => out.length > 0)
        yield* run("publish", "acme", "invoice.paid", "{}", ...flags)
        yield* received(1)
        yield* worker.signal("SIGTERM")
        yield* worker.until((_, err) => err.some((line) => line.includes("stopping")))
        release()
        assert.strictEqual(yield* worker.ended, 0)
        yield* facts.count("delivered", 1)
        assert.strictEqual(requests.length, 1)
      })
    )
  })

  it.live("ends at once when it is told a second time", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const { received, url } = yield* receiver({ answer: () => undefined })
        yield* endpoint({ url })
        const worker = yield* start("worker", "--allow-network", "127.0.0.0/8", ...flags)
        yield* worker.until((out) => out.length > 0)
        yield* run("publish", "acme", "invoice.paid", "{}", ...flags)
        yield* received(1)
        yield* worker.signal("SIGTERM")
        // Twice within half a second counts as once: a terminal and a wrapper both pass it on.
        yield* Effect.raceFirst(
          worker.ended,
          Effect.forever(Effect.andThen(Effect.sleep("100 millis"), worker.signal("SIGTERM")))
        )
        assert.strictEqual(yield* worker.ended, 143)
      })
    )
  })

  it.live.runIf(process.platform === "linux")(
    "stops when npm's shell, which it was started from, is gone",
    () => {
      const { flags, run: installed } = place()
      return installed(
        Effect.promise(async () => {
          const worker = [process.execPath, program, "worker", ...flags]
          const shell = spawn("sh", ["-c", '"$0" "$@"; exit 7', ...worker], {
            stdio: ["ignore", "pipe", "pipe"],
            env: { ...process.env, npm_command: "exec" }
          })
          const said: Array<string> = []
          shell.stderr.on("data", (chunk) => said.push(String(chunk)))
          await once(shell.stdout, "data")
          shell.kill("SIGTERM")
          // Closed when nobody is left who could write to it: the worker has ended, too.
          await once(shell, "close")
          assert.include(said.join(""), "stopping")
        })
      )
    }
  )

  it.live("has no more requests in flight than it may have files open, and says so", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const facts = yield* history
        const hook = yield* receiver({ answer: () => latency(500) })
        yield* endpoint({ url: hook.url, types: ["a"], maxInFlight: 300 })
        const worker = yield* startNode(
          [program, "worker", "--allow-network", "127.0.0.0/8", ...flags],
          undefined,
          {},
          ["sh", "-c", 'ulimit -n 128 && exec "$@"', "sh"]
        )
        yield* worker.until((out) => out.length > 1)
        for (let n = 1; n <= 200; n++) yield* publish("a", `${n}`)
        yield* facts.count("delivered", 200)
        assert.lengthOf(facts.of("attempt-failed"), 0)
        const said = worker.err.filter((line) => line.includes("files open"))
        assert.lengthOf(said, 1)
        assert.include(
          said[0],
          "this process may have 128 files open: at most 40 requests are in flight, not 1024; that many need `ulimit -n 2096` (systemd: LimitNOFILE)"
        )
      })
    )
  })

  it.live.runIf(process.platform === "linux")(
    "delivers where its log can be written nowhere, and ends when it is told to",
    () => {
      const { flags, run: installed } = place()
      return installed(
        Effect.gen(function* () {
          const facts = yield* history
          const hook = yield* receiver()
          yield* endpoint({ url: hook.url, types: ["a"] })
          const worker = yield* startNode(
            [program, "worker", "--allow-network", "127.0.0.0/8", ...flags],
            undefined,
            {},
            ["sh", "-c", 'exec "$@" 2>/dev/full', "sh"]
          )
          yield* worker.until((out) => out.length > 1)
          // It has logged what it delivers, and noticed that it cannot.
          yield* Effect.sleep("1 seconds")
          yield* publish("a", "1")
          yield* facts.count("delivered", 1)
          yield* worker.signal("SIGTERM")
          assert.strictEqual(yield* worker.ended, 0)
        })
      )
    }
  )

  it.live("goes on after SIGHUP where it uses no terminal, as with nohup", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const facts = yield* history
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url, types: ["a"] })
        const worker = yield* startNode(
          [program, "worker", "--allow-network", "127.0.0.0/8", ...flags],
          undefined,
          {},
          ["nohup"]
        )
        yield* worker.until((out) => out.length > 1)
        yield* worker.signal("SIGHUP")
        // Time to end, as it did: nothing shows that it passes over the signal.
        yield* Effect.sleep("1 seconds")
        yield* publish("a", "1")
        yield* facts.count("delivered", 1)
        yield* worker.signal("SIGTERM")
        assert.strictEqual(yield* worker.ended, 0)
      })
    )
  })
})
