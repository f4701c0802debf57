import { assert, describe, it } from "@effect/vitest"
import {
  boundAfterResize,
  eventBytesToTry,
  maxStoreBytes,
  minStoreBytes,
  reservableBytes,
  sharesOf,
  storeOn,
  waitingBytes
} from "../../src/broker/storage-limits.ts"

const MiB = 1024 ** 2
const GiB = 1024 ** 3

describe("the shares of a store", () => {
  it.each([
    [20 * GiB, 10 * GiB, 5 * GiB, GiB, 1.25 * GiB],
    [GiB, 512 * MiB, 256 * MiB, 128 * MiB, 64 * MiB],
    [minStoreBytes, 32 * MiB, 16 * MiB, 12 * MiB, 4 * MiB]
  ])("of %d bytes leave space for what has no bound", (store, events, history, dead, intake) => {
    const shares = sharesOf(store)
    assert.deepStrictEqual(shares, {
      eventBytes: events,
      historyBytes: history,
      deadBytes: dead,
      intakeBytes: intake
    })
    assert.isAtMost(events + history + dead + intake, store)
  })
})

describe("what queues and backlogs may take", () => {
  it.each([
    ["is what the others leave of the store", 10 * GiB, 5 * GiB, GiB, GiB, 3 * GiB],
    ["is a quarter of the events' at least", GiB, 30 * GiB, GiB, GiB, GiB / 4],
    ["does not shrink where others have no bound", 8 * GiB, 4 * GiB, -1, -1, 4 * GiB],
    ["nobody knows where events have no bound", -1, 4 * GiB, GiB, GiB, undefined],
    ["nobody knows where the history has none", 8 * GiB, -1, GiB, GiB, undefined]
  ])("%s", (_, eventBytes, historyBytes, deadBytes, intakeBytes, most) => {
    assert.strictEqual(waitingBytes({ eventBytes, historyBytes, deadBytes, intakeBytes }), most)
  })
})

describe("the sizes that are tried", () => {
  it("are half as large each time, and end with what the smallest store has", () => {
    assert.deepStrictEqual(eventBytesToTry(200 * MiB), [200 * MiB, 100 * MiB, 50 * MiB])
    assert.deepStrictEqual(eventBytesToTry(0), [32 * MiB])
  })
})

describe("what is left of an account", () => {
  it.each([
    ["nobody knows without a limit", { limit: undefined }, 1, undefined],
    ["is the limit where nothing is there", {}, 1, 900],
    ["is for each of three copies", {}, 3, 300],
    ["is counted once in a tier", { isTier: true }, 3, 900],
    ["is less by what is used", { used: 300 }, 3, 200],
    ["is less by what each copy has reserved", { used: 300, reserved: 200 }, 3, 100],
    ["is never less than nothing", { used: 1_000 }, 1, 0]
  ] as const)("%s", (_, changes, replicas, left) => {
    const account = { limit: 900, used: 0, reserved: 0, isTier: false, ...changes }
    assert.strictEqual(reservableBytes(account, replicas), left)
  })
})

describe("the store of an embedded broker", () => {
  it.each([
    ["half of a disk", 4 * GiB, 0, 2 * GiB],
    ["no more than the most", 1_000 * GiB, 0, maxStoreBytes],
    ["twice what is there from before it was bounded", 100 * GiB, 30 * GiB, 60 * GiB],
    ["not more than the disk has", 2 * GiB, 30 * GiB, 31.5 * GiB],
    ["nothing on a full disk", 0, 0, 0]
  ])("is %s", (_, free, used, store) => {
    assert.strictEqual(storeOn({ free, used }), store)
  })

  it.each([
    ["sets a bound where there is no stream yet", undefined, 0, 100, undefined, 100],
    ["sets one where there was none", -1, 99, 100, undefined, 100],
    ["and leaves it where more is stored", -1, 101, 100, undefined, -1],
    ["grows what came of the former size", 50, 50, 100, 50, 100],
    ["leaves what somebody chose", 70, 0, 100, 50, 70]
  ])("%s", (_, bound, held, next, former, result) => {
    assert.strictEqual(boundAfterResize({ bound, held }, next, former), result)
  })
})
