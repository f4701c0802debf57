import { assert, describe, it } from "@effect/vitest"
import type { JobRecord } from "../../../src/operations/jobs/job.ts"
import {
  allDone,
  givenUp,
  jobView,
  maxFailures,
  takenUp,
  triedLater
} from "../../../src/operations/jobs/job.ts"

const waiting: JobRecord = {
  v: 1,
  id: "job-1-00000000",
  tenant: "acme",
  state: "waiting",
  by: "ana",
  createdAt: 1,
  task: { kind: "audit", audit: {} }
}
const running = (changes: Partial<JobRecord> = {}): JobRecord => ({
  ...waiting,
  state: "running",
  ...changes
})

describe("a job that a console takes up", () => {
  it.each<[string, JobRecord, Partial<JobRecord>]>([
    ["is worked on", waiting, { state: "running", console: "me" }],
    [
      "goes on where its own console takes it up again",
      running({ console: "me" }),
      {
        state: "running",
        console: "me"
      }
    ],
    [
      "goes on where the console before was stopped",
      running(),
      {
        state: "running",
        console: "me"
      }
    ],
    [
      "counts a console that ended in the middle of it",
      running({ console: "a" }),
      {
        state: "running",
        console: "me",
        endedConsoles: ["a"]
      }
    ],
    [
      "counts a console once",
      running({ console: "a", endedConsoles: ["a"] }),
      { state: "running", console: "me", endedConsoles: ["a"] }
    ],
    [
      "goes on after two",
      running({ console: "b", endedConsoles: ["a"] }),
      { state: "running", console: "me", endedConsoles: ["a", "b"] }
    ],
    [
      "fails after three",
      running({ console: "c", endedConsoles: ["a", "b"] }),
      { state: "failed", endedConsoles: ["a", "b", "c"], endedAt: 9 }
    ],
    ["is left as it is once it has ended", { ...waiting, state: "done" }, { state: "done" }]
  ])("%s", (_, job, expected) => {
    const taken = takenUp(job, "me", 9)
    assert.deepInclude(taken, expected)
    if (taken.state !== "running") assert.notProperty(taken, "console")
    if (taken.state === "failed")
      assert.match(taken.problem ?? "", /^3 consoles ended .*\(a, b, c\)/)
  })

  it("says to whoever looks how often it was taken over, and by whom not", () => {
    const view = jobView(running({ console: "b", endedConsoles: ["a"] }))
    assert.deepInclude(view, { takeovers: 1, kind: "audit" })
    assert.notProperty(view, "console")
    assert.notProperty(view, "endedConsoles")
  })
})

describe("what a job shows of what was asked", () => {
  const asked = (task: JobRecord["task"]) => jobView({ ...waiting, task }).asked
  const to = { tenant: "acme", id: "billing" }

  it("is as a request says it", () => {
    const ids = Array.from({ length: 30 }, (_, n) => n + 1)
    const selection = { tenant: "acme", endpoint: to, status: "5xx", until: 0 }
    const until = "1970-01-01T00:00:00.000Z"
    assert.deepStrictEqual(asked({ kind: "redelivery", selection }), {
      ...{ endpoint: "billing", status: "5xx", until }
    })
    assert.deepStrictEqual(asked({ kind: "redelivery", selection: { id: ids } }), {
      ...{ id: ids.slice(0, 20), ids: 30 }
    })
    const replay = { to, until: 0, onlyMissing: true, asked: "1h" }
    assert.deepStrictEqual(asked({ kind: "replay", replay }), {
      ...{ endpoint: "billing", until, onlyMissing: true }
    })
    const audit = { tenant: "acme", since: 0 }
    assert.deepStrictEqual(asked({ kind: "audit", audit }), { tenant: "acme", since: until })
    const retry = { tenant: "acme", endpoint: "billing" }
    assert.deepStrictEqual(asked({ kind: "retry", retry }), { endpoint: "billing" })
  })
})

describe("a job that fails for a reason that may pass", () => {
  it("is tried again later and later, until it has failed too often without progress", () => {
    let job = running({ console: "me", progress: { done: 5, total: 9 } })
    const pauses: Array<number> = []
    for (let now = 0; job.state !== "failed"; now += 100_000) {
      job = triedLater({ ...job, console: "me" }, "it is away", now)
      assert.notProperty(job, "console")
      if (job.failures !== undefined) pauses.push(job.failures.nextAt - now)
    }
    assert.deepStrictEqual(pauses.slice(0, 3), [1_000, 2_000, 4_000])
    assert.strictEqual(Math.max(...pauses), 60_000)
    assert.lengthOf(pauses, maxFailures - 1)
    assert.match(job.problem ?? "", /^it is away \(20 times in a row, so it is not tried again\)$/)
  })

  it("begins to count anew where it made progress", () => {
    const failed = triedLater(running({ progress: { done: 5, total: 9 } }), "x", 0)
    const again = triedLater(failed, "x", 0)
    assert.strictEqual(again.failures?.count, 2)
    const further = triedLater({ ...again, progress: { done: 6, total: 9 } }, "x", 0)
    assert.strictEqual(further.failures?.count, 1)
    assert.notProperty(takenUp(further, "me", 9), "problem")
  })
})

describe("a job that is done", () => {
  it("has nothing left, also where others did a part of it meanwhile", () => {
    const job = running({ console: "me", progress: { done: 5, total: 9 } })
    const done = allDone(job, { redelivered: 5 }, 7)
    assert.deepStrictEqual(done, {
      ...waiting,
      state: "done",
      progress: { done: 9, total: 9 },
      endedAt: 7,
      result: { redelivered: 5 }
    })
    assert.notProperty(allDone(running(), {}, 7), "progress")
  })
})

describe("a job that a console gives up", () => {
  it.each<[string, JobRecord, JobRecord | undefined]>([
    ["waits for another console", running({ console: "me" }), waiting],
    ["stays another one's", running({ console: "a" }), undefined],
    [
      "does not count it as ended where it was only cut off",
      running({ console: "a", endedConsoles: ["me"] }),
      running({ console: "a" })
    ],
    [
      "keeps the others that have ended",
      running({ console: "me", endedConsoles: ["a", "me"] }),
      { ...waiting, endedConsoles: ["a"] }
    ],
    ["stays as it is once it has ended", { ...waiting, state: "done", console: "me" }, undefined]
  ])("%s", (_, job, expected) => {
    assert.deepStrictEqual(givenUp(job, "me"), expected)
  })
})
