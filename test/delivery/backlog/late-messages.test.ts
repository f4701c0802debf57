import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { BrokerError } from "../../../src/broker/broker-error.ts"
import { positionsIn } from "../../../src/delivery/backlog/backlog-page.ts"
import type { ReadStanding } from "../../../src/delivery/backlog/late-messages.ts"
import { LateMessages } from "../../../src/delivery/backlog/late-messages.ts"
import { RecordedAttempts } from "../../../src/delivery/recovery/partition-memory.ts"
import { nth } from "../../kit/engine.ts"
import { deliveryOf } from "../made-deliveries.ts"

const delivery = deliveryOf()
/** The second owner began after message 4. */
const owners = [
  { owner: 1, after: 0 },
  { owner: 2, after: 4 }
]

/** A delivery as it was read from message 5. */
const readFrom = (owner: number) => {
  const page = {
    ...{ seq: 5, at: 0, body: new Uint8Array() },
    ...{ entries: [{ entry: undefined, delivery }], label: { stored: 1, owner, replaces: [] } }
  }
  return { delivery, position: nth(positionsIn(page), 0), body: page.body }
}

interface Case {
  /** Who wrote message 5. (Default: the first owner, late) */
  readonly writer?: number
  readonly own?: "stored" | "storing"
  readonly isKnown?: boolean
  readonly isElsewhere?: boolean
  readonly isSilent?: boolean
  readonly isAdopted?: boolean
}

const standingOf = Effect.fnUntraced(function* (given: Case) {
  const silence = new BrokerError({ operation: "look", cause: new Error("no answer") })
  const late = new LateMessages({
    memory: { stream: "BACKLOG", recordedAttempts: new RecordedAttempts() },
    noteOwner: () => Effect.succeed(owners),
    writer: { standing: () => given.own },
    isKnown: () => given.isKnown === true,
    findHandled: (_, __, entries) =>
      given.isSilent === true
        ? Effect.fail(silence)
        : Effect.succeed(new Set(given.isElsewhere === true ? entries : []))
  })
  yield* late.begin(4)
  const read = readFrom(given.writer ?? 1)
  if (given.isAdopted === true) late.adopt(read.position)
  return (yield* late.standing(delivery, [read]))(read)
})

describe("a delivery that was read where", () => {
  const cases: ReadonlyArray<readonly [ReadStanding, string, Case]> = [
    ["waiting", "the owner has stored it itself", { writer: 2, isKnown: true, isElsewhere: true }],
    ["waiting", "another one stored it late, and nothing else is known of it", {}],
    ["handled", "it was stored late, and is known", { isKnown: true }],
    ["handled", "it was stored late, and has ended or goes on elsewhere", { isElsewhere: true }],
    ["handled", "it was stored late, and once more by its owner", { own: "stored" }],
    ["unknown", "it was stored late, and its owner is storing it", { own: "storing" }],
    ["unknown", "it was stored late, and the history does not answer", { isSilent: true }],
    ["waiting", "it is delivered from now on", { isAdopted: true, isKnown: true }]
  ]
  for (const [expected, where, given] of cases)
    it.effect(`${where} is ${expected}`, () =>
      Effect.map(standingOf(given), (standing) => assert.strictEqual(standing, expected))
    )
})
