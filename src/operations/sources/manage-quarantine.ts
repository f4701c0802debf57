import { Clock, Effect, Result, Schema } from "effect"
import { Timestamp } from "../../domain/timestamp.ts"
import {
  discardQuarantined,
  listQuarantine,
  type Quarantined,
  quarantineReasons,
  readQuarantined,
  releaseQuarantined
} from "../../intake/quarantine.ts"
import { providerOf } from "../../intake/source-provider.ts"
import { getSource } from "../../intake/source-store.ts"

/** Something that came in and is no event. */
export const QuarantinedView = Schema.Struct({
  /** Its number, in the order in which all of it came. */
  number: Schema.Int,
  tenant: Schema.String,
  source: Schema.String,
  provider: Schema.String,
  reason: Schema.Literals(quarantineReasons),
  problem: Schema.String,
  at: Timestamp,
  bytes: Schema.Int,
  contentType: Schema.String,
  /** The sender's id and type, where they could be read. */
  event: Schema.optionalKey(Schema.String),
  type: Schema.optionalKey(Schema.String),
  /** Headers of the request, and its bytes in base64: where one is shown. */
  headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  body: Schema.optionalKey(Schema.String)
})
export type QuarantinedView = typeof QuarantinedView.Type

/** What became of something in quarantine. */
export const Released = Schema.Struct({
  number: Schema.Int,
  tenant: Schema.String,
  source: Schema.String,
  /** The events that it became: their ids at the source, and their types without it. */
  events: Schema.Array(Schema.Struct({ id: Schema.String, type: Schema.String }))
})
export type Released = typeof Released.Type

const viewOf = (one: Quarantined): QuarantinedView => {
  const { at, contentType, id, problem, provider, reason, seq, source, tenant, type } = one
  return {
    ...{ number: seq, tenant, source, provider, reason, problem, at, contentType },
    bytes: one.body.length,
    ...(id === undefined ? {} : { event: id }),
    ...(type === undefined ? {} : { type })
  }
}

/** Lists what a tenant has in quarantine, oldest first, without its bytes. */
export const listQuarantined = (tenant: string) =>
  Effect.map(listQuarantine(tenant), (found) => found.map(viewOf))

/** Shows something in quarantine, with its bytes. Fails with NotQuarantined. */
export const showQuarantined = (tenant: string, number: number) =>
  Effect.map(
    readQuarantined(tenant, number),
    (one): QuarantinedView => ({
      ...viewOf(one),
      headers: one.headers,
      body: Buffer.from(one.body).toString("base64")
    })
  )

const noCertificate = () => Promise.reject(new Error("nothing is verified again"))

/** Returns what reads requests of a source as it does now; nothing where that is not there any more. */
const readerOf = Effect.fnUntraced(function* (tenant: string, id: string) {
  const stored = yield* Effect.option(getSource({ tenant, id }))
  const now = yield* Clock.currentTimeMillis
  const provider =
    stored._tag === "None"
      ? undefined
      : Result.getOrUndefined(providerOf(stored.value.source, now, noCertificate))
  return ({ body, headers, method, url }: Quarantined) => {
    const reading = provider?.read({ body, headers, method, url })
    return reading?.ok === true ? reading.events : undefined
  }
})

/**
 * Lets something in quarantine be an event, or several. Fails with NotReleasable where it cannot be
 * read and no type is given.
 *
 * @param by who asks for it, recorded in the history.
 */
export const release = Effect.fnUntraced(function* (
  tenant: string,
  number: number,
  type: string | undefined,
  by: string
) {
  const { source } = yield* readQuarantined(tenant, number)
  const read = yield* readerOf(tenant, source)
  const { events } = yield* releaseQuarantined(tenant, number, { type, read }, by)
  return { number, tenant, source, events } satisfies Released
})

/** Discards something in quarantine for good. */
export const discard = (tenant: string, number: number, by: string) =>
  Effect.map(discardQuarantined(tenant, number, by), viewOf)
