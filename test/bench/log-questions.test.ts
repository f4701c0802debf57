import { assert, describe, it } from "@effect/vitest"
import { type Known, questionsOf } from "../../bench/scenarios/log-questions.ts"
import { apiDocument } from "../../src/api/document.ts"
import { listedOperations } from "../../src/api/groups.ts"

const known: Known = {
  tenant: "bench",
  event: "bench.1",
  delivery: "bench.1.e0",
  token: "t1",
  endpoints: "e3",
  sources: "stripe",
  "dead-letters": "7",
  quarantine: "8",
  redeliveries: "j1",
  replays: "j2",
  retries: "j3",
  recoveries: "j4",
  audits: "j5"
}

const gets = (path: string) => ({
  ...(apiDocument() as { readonly paths: object }),
  paths: {
    ...(apiDocument() as { readonly paths: object }).paths,
    [path]: { get: { operationId: "new.one" } }
  }
})

const isAskedBy = (template: string, path: string) =>
  new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path.replace(/\?.*/, ""))

describe("the questions of log-asked", () => {
  it("are about each list and get of the document but the stream, and about unknown ids", () => {
    const questions = questionsOf(apiDocument(), known)
    const reads = listedOperations.filter(({ operation }) => operation.method === "GET")
    for (const { id, path } of reads) {
      const about = questions.filter((one) => isAskedBy(path, one.path))
      const isUnknownAsked = about.some(({ isUnknown }) => isUnknown)
      const hasId = path.replace("{tenant}", "").includes("{")
      assert.strictEqual(about.length > 0, id !== "deliveries.live", id)
      assert.strictEqual(isUnknownAsked, hasId, id)
    }
    assert.lengthOf(new Set(questions.map(({ name }) => name)), questions.length)
  })

  it("are about a list that is added, and fail where nothing is known of what is added", () => {
    const paths = questionsOf(gets("/v1/tenants/{tenant}/new"), known).map(({ path }) => path)
    assert.include(paths, "/v1/tenants/bench/new")
    assert.throws(
      () => questionsOf(gets("/v1/tenants/{tenant}/new/{id}"), known),
      "log-asked: no value of new is known for new.one"
    )
  })

  it("fail where a filter is of an operation that has gone", () => {
    assert.throws(() => questionsOf({ paths: {} }, known), "log-asked: there is no deliveries.live")
  })
})
