import { assert, describe, it } from "@effect/vitest"
import { OpenJobs } from "../../../src/operations/jobs/job-store.ts"

const stored = (selection: object, changes: object = {}): string =>
  JSON.stringify({
    ...{ v: 1, id: "job-1-00000000", tenant: "acme", by: "Ada", state: "waiting" },
    createdAt: 1_764_000_000_000,
    task: { kind: "redelivery", selection: { tenant: "acme", ...selection } },
    ...changes
  })

describe("Open jobs", () => {
  it("are those that this version knows all conditions of", () => {
    const jobs = new OpenJobs()
    jobs.hear("job.acme.1", stored({ type: "invoice.*" }))
    assert.lengthOf(jobs.all(), 1)
    // Without the condition it would send more than was asked for.
    jobs.hear("job.acme.2", stored({ colour: "red" }))
    jobs.hear("job.acme.3", stored({}, { onlyOnMondays: true }))
    assert.lengthOf(jobs.all(), 1)
    jobs.hear("job.acme.1", stored({ type: "invoice.*" }, { state: "cancelled" }))
    assert.lengthOf(jobs.all(), 0)
  })
})
