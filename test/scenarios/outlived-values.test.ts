import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { readEntry } from "../../src/broker/values.ts"
import { readEnqueuers } from "../../src/cluster/enqueuer-presence.ts"
import { leaseKey, memberKey, readRoster } from "../../src/cluster/roster.ts"
import { eventually } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const values = {
  [memberKey("dead")]: JSON.stringify({
    v: 1,
    id: "dead",
    instance: "killed",
    roles: ["router", "deliver"],
    host: "elsewhere",
    pid: 1,
    startedAt: 1,
    partitions: []
  }),
  [leaseKey(0)]: JSON.stringify({ worker: "dead", instance: "killed" }),
  "enqueuer.killed": JSON.stringify({
    v: 1,
    what: "a replay to acme/billing",
    by: "ops",
    host: "elsewhere",
    pid: 1,
    startedAt: 1
  })
}

/**
 * Puts values into the bucket of workers that the broker keeps beyond their TTL of 3 s, as it
 * does after some kills: it does not count the TTL of what it copies into a stream without TTLs.
 */
const storeOutliving = Effect.gen(function* () {
  const { ask, js, jsm, names } = yield* natsClients
  const bucket = names.buckets.workers
  const stream = `KV_${bucket}`
  const { config } = yield* ask("look", () => jsm.streams.info(stream))
  const from = `${stream}-copied`
  yield* ask("remove", () => jsm.streams.delete(stream))
  const { allow_msg_ttl, subject_delete_marker_ttl, ...plain } = config
  yield* ask("add", () =>
    jsm.streams.add({ name: from, subjects: [`${from}.>`], allow_msg_ttl: true })
  )
  yield* ask("add", () =>
    jsm.streams.add({
      ...plain,
      sources: [{ name: from, subject_transforms: [{ src: `${from}.>`, dest: `$KV.${bucket}.>` }] }]
    })
  )
  for (const [key, value] of Object.entries(values))
    yield* ask("publish", () => js.publish(`${from}.${key}`, value, { ttl: "3s" }))
  const count = Effect.map(
    ask("look", () => jsm.streams.info(stream)),
    ({ state }) => state.messages
  )
  yield* eventually(count, (stored) => stored === Object.keys(values).length)
  return { bucket, count }
})

describe("a heartbeat or a lease that the broker keeps beyond its TTL", () => {
  scenario("does not count as that of a live process", () =>
    Effect.gen(function* () {
      const { bucket, count } = yield* storeOutliving
      assert.isDefined((yield* readEntry(bucket, leaseKey(0))).text)
      const members = Effect.map(readRoster, (roster) => [...roster.members.keys()])
      assert.deepStrictEqual(yield* members, ["dead"])
      assert.lengthOf(yield* readEnqueuers, 1)
      yield* eventually(members, (found) => found.length === 0)
      assert.strictEqual(yield* count, 3)
      assert.strictEqual((yield* readRoster).leases.size, 0)
      assert.lengthOf(yield* readEnqueuers, 0)
      assert.isUndefined((yield* readEntry(bucket, memberKey("dead"))).text)
      const lease = yield* readEntry(bucket, leaseKey(0))
      assert.isUndefined(lease.text)
      assert.isAbove(lease.revision, 0)
    })
  )
})
