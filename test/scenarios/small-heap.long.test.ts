import { readFileSync } from "node:fs"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { closedBooks } from "../kit/books.ts"
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
      yield* closedBooks
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
      yield* closedBooks
      assert.isAtMost(peak(process.pid), 450)
      yield* process.kill9
      yield* endLeases
    })
  )
})
