import { assert, describe, it } from "@effect/vitest"
import {
  type Misbehaviour,
  misbehaviourProblems,
  type Reply,
  replyTo
} from "../../../../src/cli/commands/receive/receiver.ts"

const good: Misbehaviour = {
  ...{ failFirst: undefined, percent: undefined, status: undefined },
  ...{ drop: false, retryAfter: undefined }
}
const ok: Reply = { _tag: "Succeed", status: 200 }
const fail = (status: number, retryAfter?: number): Reply => ({ _tag: "Fail", status, retryAfter })
const drop: Reply = { _tag: "Drop" }

describe("the answer to a request", () => {
  it.each<[what: string, told: Partial<Misbehaviour>, seen: number, random: number, reply: Reply]>([
    ["is good by default", {}, 0, 0, ok],
    ["has the good status that was told", { status: 204 }, 0, 0, { _tag: "Succeed", status: 204 }],
    ["has the bad status that was told", { status: 429, retryAfter: 30 }, 9, 0.9, fail(429, 30)],
    ["fails for the first of an event", { failFirst: 2 }, 1, 0.9, fail(500)],
    ["and is good for the next", { failFirst: 2 }, 2, 0.9, ok],
    ["fails by chance", { percent: 10, status: 503 }, 5, 0.09, fail(503)],
    ["and is good by chance", { percent: 10, status: 503 }, 5, 0.1, ok],
    ["fails for either reason", { failFirst: 1, percent: 10 }, 0, 0.9, fail(500)],
    ["always fails at 100%", { percent: 100 }, 5, 0.999999, fail(500)],
    ["is none where all are dropped", { drop: true }, 5, 0.9, drop],
    ["is none where the first are dropped", { drop: true, failFirst: 1 }, 0, 0.9, drop],
    ["is good after that", { drop: true, failFirst: 1 }, 1, 0.9, ok]
  ])("%s", (_, told, seen, random, reply) =>
    assert.deepStrictEqual(replyTo({ ...good, ...told }, seen, random), reply)
  )
})

describe("what makes no sense", () => {
  it.each<[told: Partial<Misbehaviour>, problems: number]>([
    [{}, 0],
    [{ status: 204 }, 0],
    [{ failFirst: 2, status: 429, retryAfter: 30 }, 0],
    [{ percent: 5, drop: true }, 0],
    [{ drop: true, status: 500 }, 1],
    [{ failFirst: 2, status: 200 }, 1],
    [{ retryAfter: 30 }, 1],
    [{ retryAfter: 30, drop: true }, 1],
    [{ retryAfter: 30, status: 204 }, 1]
  ])("is said (%o)", (told, problems) =>
    assert.lengthOf(misbehaviourProblems({ ...good, ...told }), problems)
  )
})
