import { Effect, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readThrough } from "../../broker/bulk-read.ts"
import { readStream, storedAt } from "../../broker/scan.ts"
import { maxNodeSkewMs } from "../../domain/clock-bounds.ts"
import { factResult } from "../../domain/fact.ts"
import { readRecord } from "../fact-record.ts"
import type { Version } from "./configuration-versions.ts"
import type { PlanCheck } from "./plan-check.ts"
import type { AuditProblem } from "./problem.ts"

/** What is copied from a history that has dropped nothing is complete, whenever it is copied. */
const isHistoryWhole = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const { state } = yield* streamInfo("look at the history", names.history)
  return state.first_seq <= 1
})

/**
 * Reads all changes of endpoints, from the copy of their facts that does not expire. Must run before
 * any plan is checked.
 */
export const readConfiguration = Effect.fnUntraced(function* (
  check: PlanCheck,
  tenant: string | undefined
) {
  const { names, streamInfo } = yield* Broker
  const stream = names.configuration
  const { config, state } = yield* streamInfo(`look at ${stream}`, stream)
  const problems: Array<AuditProblem> = []
  // Init begins a stream that it makes again far above the sequences of the former one.
  const { first_seq: beginning = 1 } = config
  const removed = state.first_seq - Math.max(1, beginning) + (state.num_deleted ?? 0)
  if (state.messages > 0 && removed > 0)
    problems.push({
      kind: "configuration-gap",
      stream,
      says: `${removed} of the changes of endpoints are not in ${stream} any more: they were removed`
    })
  if (beginning > 1 && !(yield* isHistoryWhole))
    problems.push({
      kind: "configuration-gap",
      stream,
      says: `${stream} was removed and made again: changes of endpoints that the history had dropped by then are not in it`
    })
  const kind = "endpoint-changed"
  yield* readThrough(
    {
      stream,
      subjects: [names.subjects.fact(tenant ?? "*", "*", factResult(kind), kind)],
      from: 1,
      to: state.last_seq
    },
    ({ message, seq }) => {
      const record = readRecord(message.string())
      const taken = record === undefined ? "unreadable" : check.change(record)
      if (taken === "read") return
      if (typeof taken === "object") {
        const says = `message ${seq} of ${stream} is false: ${taken.says}`
        problems.push({ ...taken, stream, streamSeq: seq, says })
        return
      }
      problems.push({
        kind: "unreadable-fact",
        ...{ stream, streamSeq: seq },
        says: `message ${seq} of ${stream} is not a fact that this version can read`
      })
    }
  )
  return problems
})

/** True if the bucket's entry of an endpoint is this version, or one that was stored after it. */
const isHeld = (
  { at, revision }: { readonly at: number; readonly revision: number },
  version: Pick<Version, "revision" | "storedAt">
): boolean =>
  revision === version.revision
    ? version.storedAt === 0 || version.storedAt === at
    : revision > version.revision && version.storedAt <= at + maxNodeSkewMs

/**
 * Finds changes that the history has and the bucket has not. The opposite is no problem: no worker
 * may have seen the change yet.
 */
export const compareConfiguration = Effect.fnUntraced(function* (
  check: PlanCheck,
  tenant: string | undefined
) {
  const { names } = yield* Broker
  const bucket = names.buckets.endpoints
  const prefix = `$KV.${bucket}.`
  const entries = new Map<string, { readonly revision: number; readonly at: number }>()
  yield* Stream.runForEach(
    readStream({
      stream: `KV_${bucket}`,
      subjects: [`${prefix}${tenant ?? "*"}.*`],
      headersOnly: true
    }),
    (message) =>
      Effect.sync(() => {
        const key = message.subject.slice(prefix.length)
        entries.set(key, { revision: message.seq, at: storedAt(message) })
      })
  )
  const problems: Array<AuditProblem> = []
  for (const { key, version } of check.latest()) {
    const { revision, state } = version
    const [owner = "", endpoint = ""] = key.split(".")
    if ((tenant ?? owner) !== owner) continue
    const there = entries.get(key)
    if (there === undefined ? state === "removed" || state === "unknown" : isHeld(there, version))
      continue
    problems.push({
      kind: "configuration-differs",
      ...{ tenant: owner, endpoint },
      says:
        there === undefined
          ? `the facts tell of ${owner}/${endpoint} at revision ${revision}, and the endpoints' bucket has nothing of it`
          : `the facts tell of ${owner}/${endpoint} at revision ${revision}, and the endpoints' bucket has revision ${there.revision}${there.revision === revision ? ", stored at another time" : ""}`
    })
  }
  return problems
})
