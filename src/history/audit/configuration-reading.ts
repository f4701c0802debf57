import { Effect, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readThrough } from "../../broker/bulk-read.ts"
import { readStream } from "../../broker/scan.ts"
import { factResult } from "../../domain/fact.ts"
import { readRecord } from "../fact-record.ts"
import type { PlanCheck } from "./plan-check.ts"
import type { AuditProblem } from "./problem.ts"

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
  const { state } = yield* streamInfo(`look at ${stream}`, stream)
  const problems: Array<AuditProblem> = []
  const removed = state.first_seq - 1 + (state.num_deleted ?? 0)
  if (state.messages > 0 && removed > 0)
    problems.push({
      kind: "configuration-gap",
      stream,
      says: `${removed} of the changes of endpoints are not in ${stream} any more: somebody removed them`
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
      if (record !== undefined && check.change(record)) return
      problems.push({
        kind: "unreadable-fact",
        ...{ stream, streamSeq: seq },
        says: `message ${seq} of ${stream} is no fact that this version can read`
      })
    }
  )
  return problems
})

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
  const revisions = new Map<string, number>()
  yield* Stream.runForEach(
    readStream({
      stream: `KV_${bucket}`,
      subjects: [`${prefix}${tenant ?? "*"}.*`],
      headersOnly: true
    }),
    ({ seq, subject }) => Effect.sync(() => revisions.set(subject.slice(prefix.length), seq))
  )
  const problems: Array<AuditProblem> = []
  for (const { key, version } of check.latest()) {
    const { revision, state } = version
    const [owner = "", endpoint = ""] = key.split(".")
    if ((tenant ?? owner) !== owner) continue
    const there = revisions.get(key)
    if (there === undefined ? state === "removed" || state === "unknown" : there >= revision)
      continue
    problems.push({
      kind: "configuration-differs",
      ...{ tenant: owner, endpoint },
      says:
        there === undefined
          ? `the facts tell of ${owner}/${endpoint} at revision ${revision}, and the endpoints' bucket has nothing of it`
          : `the facts tell of ${owner}/${endpoint} at revision ${revision}, and the endpoints' bucket has revision ${there}`
    })
  }
  return problems
})
