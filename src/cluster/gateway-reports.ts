import { Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import { eraseValue, readValues, type StoredValue, writeValue } from "../broker/values.ts"
import { Timestamp } from "../domain/timestamp.ts"
import { Token } from "../domain/token.ts"

/** A source that refuses all that comes, as one gateway sees it. */
export const RefusingSource = Schema.Struct({
  tenant: Token.annotateKey({ description: "The name of the tenant." }),
  source: Token.annotateKey({ description: "The id of the source." }),
  reason: Schema.String.annotateKey({ description: "One sentence." }),
  since: Timestamp.annotateKey({ description: "When the first was refused." })
})
export type RefusingSource = typeof RefusingSource.Type

/** What a gateway last said of itself. */
export const GatewayReport = Schema.Struct({
  v: Schema.Literal(1),
  gateway: Token.annotateKey({ description: "The process." }),
  host: Schema.String.annotateKey({ description: "The host that it runs on." }),
  startedAt: Timestamp.annotateKey({ description: "When it was started." }),
  at: Timestamp.annotateKey({ description: "When it said so." }),
  underWay: Schema.Int.annotateKey({ description: "Requests under way." }),
  refusing: Schema.Array(RefusingSource).annotateKey({
    description: "Sources that refuse every request."
  }),
  problem: Schema.optionalKey(Schema.String).annotateKey({
    description: "Why the broker did not store what it tried last, one sentence; absent if it did."
  }),
  isOutdated: Schema.optionalKey(Schema.Boolean).annotateKey({
    description:
      "True if the broker does not show it the sources: it knows them as they were before. (Default: false)"
  })
})
export type GatewayReport = typeof GatewayReport.Type

/** A report is forgotten after so long, ms: its gateway does not run any more. */
const keptMs = 30_000

const prefix = "gateway."
const keyOf = (gateway: string): string => `${prefix}${gateway}`
const json = Schema.fromJsonString(GatewayReport)
const decode = Schema.decodeUnknownOption(json)
const encode = Schema.encodeSync(json)

/**
 * Returns what the gateways that run last said, in the order in which they started.
 *
 * @param values of the bucket of workers.
 */
export const gatewayReportsIn = (
  values: ReadonlyArray<StoredValue>
): ReadonlyArray<GatewayReport> =>
  values
    .filter(({ key }) => key.startsWith(prefix))
    .flatMap(({ text }) => Option.toArray(decode(text)))
    .toSorted((a, b) => a.startedAt - b.startedAt)

/** Reads what the gateways that run last said, in the order in which they started. */
export const readGatewayReports = Effect.gen(function* () {
  const { names } = yield* Broker
  const values = yield* Stream.runCollect(readValues(names.buckets.workers, `${prefix}*`))
  return gatewayReportsIn(values)
})

/** Stores what a gateway says of itself, for half a minute. */
export const writeGatewayReport = Effect.fnUntraced(function* (report: GatewayReport) {
  const { names } = yield* Broker
  const key = keyOf(report.gateway)
  yield* writeValue(names.buckets.workers, key, encode(report), { ttl: keptMs })
})

/** Takes back what a gateway has said: it has stopped. */
export const eraseGatewayReport = Effect.fnUntraced(function* (gateway: string) {
  const { names } = yield* Broker
  yield* eraseValue(names.buckets.workers, keyOf(gateway))
})
