import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { nobody } from "../../src/domain/token.ts"
import { audit } from "../../src/history/audit/audit.ts"
import type { AuditReport } from "../../src/operations/audit/run-audit.ts"
import { runJobs } from "../../src/operations/jobs/job-runner.ts"
import { addJob, showJob } from "../../src/operations/jobs/manage-jobs.ts"
import { run } from "../cli/in-process.ts"
import { quiet } from "../kit/consistency.ts"
import { eventually, publishTo, worker } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const publishAll = (ids: ReadonlyArray<readonly [tenant: string, id?: string]>) =>
  Effect.forEach(ids, ([tenant, id]) =>
    publishTo(`${tenant}.a`, "{}", id === undefined ? {} : { "Nats-Msg-Id": id })
  )

describe.concurrent("an audit of tenants that publish to one stream", () => {
  scenario("counts, without calling it a problem, what has an id that may be another's", (place) =>
    Effect.gen(function* () {
      yield* worker()
      yield* publishAll([
        ["acme", "acme.1"],
        ["acme", "invoice-2"],
        ["acme", "invoice-3"],
        ["acme"],
        ["globex", "globex/1"]
      ])
      yield* quiet
      const { cautions, judgement } = yield* audit({})
      assert.strictEqual(judgement.verdict, "clean")
      assert.deepStrictEqual(
        cautions.map(({ events, kind, tenant }) => [kind, tenant, events]),
        [["ids-without-tenant", "acme", 2]]
      )
      const { code, out } = yield* run(
        ...["audit", "--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
      )
      assert.strictEqual(code, 0)
      assert.include(out.join(" "), "Caution: ids-without-tenant: 2 events of acme: their ids")
    })
  )

  scenario("of thousands, as a job, has a result that fits into its message", () =>
    Effect.gen(function* () {
      yield* worker()
      const tenants = 4_000
      yield* Effect.forEach(
        Array.from({ length: tenants }, (_, number) => number),
        (number) => publishTo(`tenant-${number}.a`, "{}", { "Nats-Msg-Id": `${number}` }),
        { concurrency: 64, discard: true }
      )
      yield* quiet
      yield* runJobs("console")
      const { id } = yield* addJob({ kind: "audit", audit: {} }, nobody, "ana")
      const { result } = yield* eventually(
        showJob(id, { kind: "audit", tenant: undefined }),
        ({ state }) => state === "done"
      )
      const { cautions, verdict } = result as Pick<AuditReport, "cautions" | "verdict">
      assert.strictEqual(verdict, "clean")
      assert.strictEqual(
        cautions.reduce((sum, { events }) => sum + events, 0),
        tenants
      )
    })
  )

  scenario("has nothing to say where there is one tenant", () =>
    Effect.gen(function* () {
      yield* worker()
      yield* publishAll([
        ["acme", "1"],
        ["acme", "2"]
      ])
      yield* quiet
      assert.deepStrictEqual((yield* audit({})).cautions, [])
    })
  )
})
