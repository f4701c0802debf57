import { Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import { eraseValue, readValues, writeValue } from "../broker/values.ts"
import { Timestamp } from "../domain/timestamp.ts"
import { Token } from "../domain/token.ts"

/** A source that refuses all that comes, as one gateway sees it. */
export const RefusingSource = Schema.Struct({
  tenant: Token,
  source: Token,
  /** One sentence. */
  reason: Schema.String,
  /** When the first was refused. */
  since: Timestamp
})
export type RefusingSource = typeof RefusingSource.Type

/** What a gateway last said of itself. */
export const GatewayReport = Schema.Struct({
  v: Schema.Literal(1),
  /** The process. */
  gateway: Token,
  host: Schema.String,
  startedAt: Timestamp,
  /** When it said so. */
  at: Timestamp,
  /** Requests under way. */
  underWay: Schema.Int,
  refusing: Schema.Array(RefusingSource)
})
export type GatewayReport = typeof GatewayReport.Type

/** A report is forgotten after so long, ms: its gateway does not run any more. */
const keptMs = 30_000

const keyOf = (gateway: string): string => `gateway.${gateway}`
const json = Schema.fromJsonString(GatewayReport)
const decode = Schema.decodeUnknownOption(json)
const encode = Schema.encodeSync(json)

/** Reads what the gateways that run last said, in the order in which they started. */
export const readGatewayReports = Effect.gen(function* () {
  const { names } = yield* Broker
  const values = yield* Stream.runCollect(readValues(names.buckets.workers, keyOf("*")))
  return values
    .flatMap(({ text }) => Option.toArray(decode(text)))
    .toSorted((a, b) => a.startedAt - b.startedAt)
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
