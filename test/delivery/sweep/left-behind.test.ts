import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { Broker } from "../../../src/broker/broker.ts"
import { natsClients } from "../../../src/broker/clients.ts"
import type { HeaderList } from "../../../src/broker/publication.ts"
import { noteOwner } from "../../../src/delivery/recovery/backlog-owners.ts"
import { HistoryPosition } from "../../../src/delivery/recovery/completed-deliveries.ts"
import { takeOver } from "../../../src/delivery/recovery/takeover.ts"
import { writeRecord } from "../../../src/delivery/retry/retry-records.ts"
import { hasLeft, recoverLeftBehind } from "../../../src/delivery/sweep/left-behind.ts"
import { labelHeaders } from "../../../src/domain/backlog-message.ts"
import { deliveryHeaders, untried } from "../../../src/domain/delivery.ts"
import type { Fact, FactKind } from "../../../src/domain/fact.ts"
import { placeName } from "../../../src/domain/fact.ts"
import type { RetryRecord } from "../../../src/domain/retry-record.ts"
import type { Sighting } from "../../../src/history/locate.ts"
import { onServer } from "../../kit/scenario.ts"
import { deliveryOf, now, placeOf } from "../made-deliveries.ts"

const { scenario } = onServer()

const place = placeOf(3)
const about = { tenant: "acme", endpoint: "hook", event: "7@1", round: "0" }

/** A message of the same round. */
const messageAt = (
  where: "backlog" | "queue" | "schedules",
  seq: number,
  { attempts = 0, origin }: { readonly attempts?: number; readonly origin?: string } = {}
): Sighting => ({ ...about, where, place: placeOf(seq), attempts, origin })

const factOf = (kind: FactKind, changes: Partial<Fact> = {}): Sighting => ({
  ...{ ...about, where: "history", seq: 1 },
  fact: { v: 1, kind, at: now, tenant: "acme", endpoint: "hook", ...changes }
})

const from = { origin: placeName(place) }
const tried = (attempts: number) => ({ attempts })

describe("a message that its consumer has passed", () => {
  for (const [what, sighting, expected] of [
    ["its delivery succeeded", factOf("delivered"), true],
    ["it succeeded when another owned it", factOf("delivered-late"), true],
    ["it was dead-lettered", factOf("dead-lettered"), true],
    ["an attempt failed", factOf("attempt-failed", { attempt: 2 }), false],
    ["one failed where it was moved to", factOf("attempt-failed", { origin: from.origin }), true],
    ["it is seen itself", messageAt("queue", 3, { ...from, ...tried(9) }), false],
    ["it waits as a schedule that it became", messageAt("schedules", 4, from), true],
    ["it waits in the backlog, moved there", messageAt("backlog", 4, from), true],
    ["it is in the backlog as often attempted", messageAt("backlog", 4, tried(2)), false],
    ["it is in the backlog less often attempted", messageAt("backlog", 4, tried(1)), false],
    ["it is in the queue more often attempted", messageAt("queue", 4, tried(3)), true]
  ] as const)
    it(`has ${expected ? "left its place" : "not left it, as far as is known,"} where ${what}`, () => {
      assert.strictEqual(hasLeft({ place, attempts: 2 }, sighting), expected)
    })
})

describe.concurrent("a message of a queue that its consumer has forgotten", () => {
  for (const [writer, expected] of [
    ["its owner", true],
    ["a former one, late", false]
  ] as const)
    scenario(
      `${expected ? "has left it" : "is still there"} where it was stored by ${writer}`,
      () =>
        Effect.gen(function* () {
          const { names, publisher } = yield* natsClients
          const { readMessage } = yield* Broker
          const { backlog, delivery: queue } = names.subjects
          const made = deliveryOf({ deadline: Date.now() + 60_000 })
          const send = (subject: string, headers: HeaderList) =>
            publisher.publish(subject, "{}", headers)
          const { seq, stream } = yield* send(
            queue(0, "acme", "hook"),
            deliveryHeaders(made, "queued")
          )
          const message = yield* readMessage("look", stream, { seq })
          const place = { stream, seq, at: message?.time.getTime() ?? 0 }
          const due = Date.now() - 60_000
          const record: RetryRecord = {
            ...{ v: 1, progress: untried, decidedAt: due },
            decision: { _tag: "Nak", at: due }
          }
          yield* writeRecord(place, record, made.deadline)
          yield* noteOwner(0, { owner: 1, after: 0 })
          if (!expected) yield* noteOwner(0, { owner: 2, after: 0 })
          const [memory] = yield* takeOver([0], new HistoryPosition(0), {
            ...{ partitions: 1, historyAtChange: 0 }
          })
          if (memory === undefined) return assert.fail("no memory")
          // It arrives while the owner works.
          const moved = deliveryHeaders({ ...made, origin: placeName(place) }, "moved")
          const label = labelHeaders({ stored: 1, owner: 1, replaces: [] })
          yield* send(backlog(0, "acme", "hook"), [...moved, ...label])
          const adopted = yield* Deferred.make<boolean>()
          yield* Effect.forkScoped(
            recoverLeftBehind({
              ...{ memory, recall: () => Effect.undefined, isInFlight: () => false },
              adopt: (_, isSettled) => Deferred.succeed(adopted, isSettled),
              mayDecide: () => true
            })
          )
          assert.strictEqual(yield* Deferred.await(adopted), expected)
        })
    )
})
