import { readFileSync } from "node:fs"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { pauseEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { addJob, showJob } from "../../src/operations/jobs/manage-jobs.ts"
import { startWith } from "../cli/running.ts"
import { consistentRounds } from "../kit/consistency.ts"
import { backlogged, endpoint, eventually, publishMany } from "../kit/engine.ts"
import { gate } from "../kit/gate.ts"
import { receiver } from "../kit/receiver.ts"
import { outage } from "../kit/scenario.ts"
import { endLeases, workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ testTimeout: 180_000 })

/** The most memory that a process has had so far, MiB. */
const peak = (pid: number): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024

/** MiB */
const heap = 64

describe.runIf(process.platform === "linux")("a worker with a small heap", () => {
  outage("outlives a receiver that takes nothing, and then all that waited for it", (place) =>
    Effect.gen(function* () {
      const slow = yield* gate
      yield* endpoint({ url: slow.url, maxInFlight: 50, timeout: "5 minutes" })
      const process = yield* workerProcess(place, { heap })
      yield* process.delivering
      const count = 25_000
      // Three times what its heap would hold.
      yield* publishMany(count, "invoice.paid", 8_000)
      yield* eventually(backlogged, (waiting) => waiting >= count - 500)
      const idle = peak(process.pid)
      yield* slow.open
      yield* slow.received(count)
      yield* consistentRounds
      assert.isAtMost(slow.now.most, 50)
      assert.isAtMost(peak(process.pid), idle + 150)
      yield* process.kill9
      yield* endLeases
    })
  )

  outage("outlives a broker that takes nothing while receivers are quick", (place, server) =>
    Effect.gen(function* () {
      const quick = yield* receiver()
      const each = 5_000
      for (const id of ["a", "b", "c", "d"])
        yield* endpoint({ id, url: quick.url, types: [id], maxInFlight: 100 })
      const process = yield* workerProcess(place, { heap })
      yield* process.delivering
      for (const id of ["a", "b", "c", "d"]) yield* publishMany(each, id, 4_000)
      for (const part of [0.25, 0.5, 0.75]) {
        yield* quick.received(4 * each * part)
        server.pause()
        // What was under way is answered meanwhile, and nothing more is begun.
        yield* Effect.sleep("3 seconds")
        server.resume()
      }
      yield* quick.received(4 * each)
      yield* consistentRounds
      assert.isAtMost(peak(process.pid), 450)
      yield* process.kill9
      yield* endLeases
    })
  )
})

describe.runIf(process.platform === "linux")("a console with a small heap", () => {
  outage("replays more than its heap would hold", (place) =>
    Effect.gen(function* () {
      const count = 250_000
      yield* endpoint({ id: "slow", types: ["none"] })
      yield* publishMany(count)
      yield* pauseEndpoint({ tenant: "acme", endpoint: "slow" }, undefined, "test")
      const replay = { to: { tenant: "acme", id: "slow" }, types: [">"] as const }
      const { id } = yield* addJob({ kind: "replay", replay }, "acme", "ana")
      const console = yield* startWith(
        [`--max-old-space-size=${heap}`],
        ...["console", "--roles", "api", "--listen", "127.0.0.1:0"],
        ...["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
      )
      yield* console.until((out) => out.length > 0)
      const idle = peak(console.pid)
      // What it sends is held back, since the endpoint takes nothing.
      const held = eventually(
        showJob(id, { kind: "replay", tenant: undefined }),
        ({ progress }) => (progress?.done ?? 0) >= 1_000
      )
      const died = Effect.map(console.ended, (code) => {
        throw new Error(`ended with ${code}: ${console.err.join("\n")}`)
      })
      const shown = yield* Effect.raceFirst(held, died)
      assert.strictEqual(shown.state, "running")
      assert.strictEqual(shown.progress?.total, count)
      assert.isAtMost(peak(console.pid), idle + 150)
    })
  )
})
