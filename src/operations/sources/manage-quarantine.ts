import { Clock, Effect, Result, Schema } from "effect"
import { maxQuarantined } from "../../broker/topology.ts"
import { invalid } from "../../domain/problem.ts"
import { SourceId } from "../../domain/source.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import {
  discardQuarantined,
  listQuarantine,
  NotQuarantined,
  type Quarantined,
  type QuarantinedNote,
  quarantineReasons,
  readQuarantined,
  releaseQuarantined
} from "../../intake/quarantine.ts"
import { providerOf } from "../../intake/source-provider.ts"
import { getSource } from "../../intake/source-store.ts"

/** Something that came in and is no event. */
export const QuarantinedView = Schema.Struct({
  number: Schema.Int.annotateKey({
    description: "Its number, in the order in which all of it came."
  }),
  tenant: Schema.String.annotateKey({ description: "The name of the tenant." }),
  source: Schema.String.annotateKey({ description: "The id of the source." }),
  provider: Schema.String.annotateKey({ description: "The name of the provider." }),
  reason: Schema.Literals(quarantineReasons).annotateKey({
    description: "Why it could not become an event."
  }),
  problem: Schema.String.annotateKey({ description: "What is wrong, in a sentence." }),
  at: Timestamp.annotateKey({ description: "When it came in." }),
  bytes: Schema.Int.annotateKey({ description: "Size in bytes." }),
  contentType: Schema.String.annotateKey({ description: "The media type of the body." }),
  event: Schema.optionalKey(Schema.String).annotateKey({
    description: "The sender's id and type, if they could be read."
  }),
  type: Schema.optionalKey(Schema.String).annotateKey({ description: "The type of the event." }),
  headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)).annotateKey({
    description: "Headers of the request, and its bytes in base64: where one is shown."
  }),
  body: Schema.optionalKey(Schema.String).annotateKey({ description: "The body that came in." })
})
export type QuarantinedView = typeof QuarantinedView.Type

/** What became of something in quarantine. */
export const Released = Schema.Struct({
  number: Schema.Int.annotateKey({ description: "Its number in the quarantine." }),
  tenant: Schema.String.annotateKey({ description: "The name of the tenant." }),
  source: Schema.String.annotateKey({ description: "The id of the source." }),
  events: Schema.Array(
    Schema.Struct({
      id: Schema.String.annotateKey({ description: "The id of the event." }),
      type: Schema.String.annotateKey({ description: "The type of the event." })
    })
  ).annotateKey({
    description: "The events that it became: their ids at the source, and their types without it."
  })
})
export type Released = typeof Released.Type

const viewOf = (one: QuarantinedNote): QuarantinedView => {
  const { at, bytes, contentType, id, problem, provider, reason, seq, source, tenant, type } = one
  return {
    ...{ number: seq, tenant, source, provider, reason, problem, at, contentType, bytes },
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

/** Reads requests of a source as it does now; empty if that is not there any more. */
const readerOf = Effect.fnUntraced(function* (tenant: string, id: string) {
  const stored = yield* Effect.result(getSource({ tenant, id }))
  if (stored._tag === "Failure" && stored.failure._tag === "SourceNotFound") return {}
  const now = yield* Clock.currentTimeMillis
  const provider =
    stored._tag === "Failure"
      ? undefined
      : Result.getOrUndefined(providerOf(stored.success.source, now, noCertificate))
  return {
    read: ({ body, headers, method, url }: Quarantined) => {
      const reading = provider?.read({ body, headers, method, url })
      return reading?.ok === true ? reading.events : undefined
    },
    isRepeat: provider?.isRepeat
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
  const reader = yield* readerOf(tenant, source)
  const { events } = yield* releaseQuarantined(tenant, number, { type, ...reader }, by)
  return { number, tenant, source, events } satisfies Released
})

/** Discards something in quarantine for good. */
export const discard = (tenant: string, number: number, by: string) =>
  Effect.map(discardQuarantined(tenant, number, by), viewOf)

/** Which of a tenant's quarantine are meant; all conditions hold at once. */
export const QuarantineChoice = Schema.Struct({
  /** Their numbers. (Default: any) */
  number: Schema.optionalKey(
    Schema.Array(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))).check(
      Schema.isMinLength(1),
      Schema.isMaxLength(maxQuarantined)
    )
  ).annotateKey({ description: "Its number in the quarantine." }),
  source: Schema.optionalKey(SourceId).annotateKey({ description: "The id of the source." }),
  reason: Schema.optionalKey(Schema.Literals(quarantineReasons)).annotateKey({
    description: "Why it could not become an event."
  }),
  all: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "True for all of it: nothing is chosen by leaving everything out."
  })
})
export type QuarantineChoice = typeof QuarantineChoice.Type

/** What stays in quarantine, and why. */
const Left = Schema.Struct({
  number: Schema.Int.annotateKey({ description: "Its number in the quarantine." }),
  problem: Schema.String.annotateKey({ description: "What is wrong, in a sentence." })
})
type Left = typeof Left.Type

/** What became of those that were to be released. */
export const ReleasedSeveral = Schema.Struct({
  released: Schema.Array(Released).annotateKey({ description: "What was released." }),
  left: Schema.Array(Left).annotateKey({ description: "What stays in the quarantine, and why." })
})
export type ReleasedSeveral = typeof ReleasedSeveral.Type

/** What became of those that were to be discarded. */
export const DiscardedSeveral = Schema.Struct({
  discarded: Schema.Array(QuarantinedView).annotateKey({ description: "What was discarded." }),
  left: Schema.Array(Left).annotateKey({ description: "What stays in the quarantine, and why." })
})
export type DiscardedSeveral = typeof DiscardedSeveral.Type

/** Lists those that are chosen, oldest first, and the numbers that are not there. */
export const chooseQuarantined = Effect.fnUntraced(function* (
  tenant: string,
  { all = false, number, reason, source }: QuarantineChoice
) {
  if (all && (number ?? source ?? reason) !== undefined)
    return yield* invalid(
      "all",
      "cannot be combined with `number`, `source` and `reason`: it selects everything"
    )
  if (!all && (number ?? source ?? reason) === undefined)
    return yield* invalid("", "say which: `number`, `source`, `reason`, or `all`")
  const found = yield* listQuarantined(tenant)
  const known = new Set(found.map((one) => one.number))
  return {
    chosen: found.filter(
      (one) =>
        (number?.includes(one.number) ?? true) &&
        (source === undefined || one.source === source) &&
        (reason === undefined || one.reason === reason)
    ),
    missing: [...new Set(number)].filter((one) => !known.has(one))
  }
})

/**
 * Does something with each of those that are chosen, oldest first; a tenant has `maxQuarantined` of
 * them at most.
 *
 * @param run what it is, or why one stays in quarantine: that keeps nothing from the others.
 */
const forEachChosen = Effect.fnUntraced(function* <A extends { readonly tenant: string }, E, R>(
  tenant: string,
  choice: QuarantineChoice,
  run: (number: number) => Effect.Effect<A | string, E, R>
) {
  const { chosen, missing } = yield* chooseQuarantined(tenant, choice)
  const left: Array<Left> = missing.map((seq) => ({
    number: seq,
    problem: new NotQuarantined({ tenant, seq }).message
  }))
  const done: Array<A> = []
  for (const { number } of chosen) {
    const what = yield* run(number)
    if (typeof what === "string") left.push({ number, problem: what })
    else done.push(what)
  }
  return { done, left }
})

/**
 * Lets several in quarantine be events, as `release` does one. Fails with Invalid where nothing is
 * chosen. Safe to repeat: what was released is not there any more.
 *
 * @param type of all their events. (Default: what the provider says of each)
 */
export const releaseSeveral = (
  tenant: string,
  choice: QuarantineChoice,
  type: string | undefined,
  by: string
) =>
  Effect.map(
    forEachChosen(tenant, choice, (number) =>
      release(tenant, number, type, by).pipe(
        Effect.catchTags({
          NotQuarantined: ({ message }) => Effect.succeed(message),
          NotReleasable: ({ message }) => Effect.succeed(message),
          // Other reasons keep the others from being stored, too.
          NotStored: (error) =>
            error.reason === "invalid" || error.reason === "too-large"
              ? Effect.succeed(error.message)
              : Effect.fail(error)
        })
      )
    ),
    ({ done, left }): ReleasedSeveral => ({ released: done, left })
  )

/** Discards several for good, as `discard` does one. Fails with Invalid where nothing is chosen. */
export const discardSeveral = (tenant: string, choice: QuarantineChoice, by: string) =>
  Effect.map(
    forEachChosen(tenant, choice, (number) =>
      discard(tenant, number, by).pipe(
        Effect.catchTag("NotQuarantined", ({ message }) => Effect.succeed(message))
      )
    ),
    ({ done, left }): DiscardedSeveral => ({ discarded: done, left })
  )
