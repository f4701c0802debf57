import { assert, describe, it } from "@effect/vitest"
import { makeNames } from "../../src/domain/names.ts"

describe("the tenant in a subject", () => {
  const { buckets, subjects, tenantIn } = makeNames("WEB_HOOKS_", "events")

  for (const [subject, tenant] of [
    [subjects.fact("acme", "hook", "ok", "delivered"), "acme"],
    [subjects.dead("acme", "hook"), "acme"],
    [subjects.delivery(3, "acme", "hook"), "acme"],
    [subjects.backlog(3, "acme", "hook"), "acme"],
    [`$KV.${buckets.health}.acme.hook`, "acme"],
    // These name places, partitions and workers.
    [`$KV.${buckets.retries}.WEB_HOOKS_DELIVERIES_3.17.1790000000000`, undefined],
    [`$KV.${buckets.workers}.owner.3`, undefined],
    [subjects.schedule(3, "17"), undefined],
    ["events.acme.invoice.paid", undefined],
    ["elsewhere.history.acme.hook.ok.delivered", undefined]
  ] as const)
    it(`${subject}: ${tenant ?? "none"}`, () => {
      assert.strictEqual(tenantIn(subject), tenant)
    })
})

describe("a stream of an installation", () => {
  const { backlog, deliveries, isOwn, partitionIn } = makeNames("PETREL_")

  for (const [stream, is, partition] of [
    ["PETREL_EVENTS", true, undefined],
    ["KV_petrel_endpoints", true, undefined],
    [deliveries(12), true, 12],
    [backlog(0), true, 0],
    // Of an installation whose prefix is PETREL_2_.
    ["PETREL_2_EVENTS", false, undefined],
    ["KV_petrel_2_endpoints", false, undefined],
    ["PETREL_DELIVERIES_2_EVENTS", false, undefined],
    ["PETREL_DELIVERIES_", false, undefined]
  ] as const)
    it(`${stream}: ${is ? "its own" : "another's"}`, () => {
      assert.deepStrictEqual([isOwn(stream), partitionIn(stream)], [is, partition])
    })
})
