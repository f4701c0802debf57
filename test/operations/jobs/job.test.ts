import { assert, describe, it } from "@effect/vitest"
import type { JobRecord } from "../../../src/operations/jobs/job.ts"
import { givenUp, jobView, takenUp } from "../../../src/operations/jobs/job.ts"

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
    [
      "is cancelled where somebody wants that, whatever it has ended",
      running({ console: "c", endedConsoles: ["a", "b"], isCancelled: true }),
      { state: "cancelled", endedAt: 9 }
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

describe("a job that a console gives up", () => {
  it.each<[string, JobRecord, JobRecord | undefined]>([
    ["is nobody's", running({ console: "me" }), running()],
    ["stays another one's", running({ console: "a" }), undefined],
    [
      "does not count it as ended where it was only cut off",
      running({ console: "a", endedConsoles: ["me"] }),
      running({ console: "a" })
    ],
    [
      "keeps the others that have ended",
      running({ console: "me", endedConsoles: ["a", "me"] }),
      running({ endedConsoles: ["a"] })
    ],
    ["stays as it is once it has ended", { ...waiting, state: "done", console: "me" }, undefined]
  ])("%s", (_, job, expected) => {
    assert.deepStrictEqual(givenUp(job, "me"), expected)
  })
})
