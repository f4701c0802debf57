import { Schema } from "effect"
import { Timestamp } from "./timestamp.ts"

/** Ids of missing events that a fact names. */
export const maxNamedMissing = 20

/**
 * What a comparison of a provider's list with what came in has found. Counts are of events. Each
 * that is listed came in, or is missing, or is too old for it to be known.
 */
export const Reconciliation = Schema.Struct({
  since: Timestamp.annotateKey({ description: "What was asked for." }),
  until: Timestamp.annotateKey({ description: "Up to when it compared." }),
  listed: Schema.Int.annotateKey({ description: "Events that the provider listed." }),
  present: Schema.Int.annotateKey({
    description: "Those of them that came in, or had been fetched before."
  }),
  missing: Schema.Int.annotateKey({ description: "Those that had not come in." }),
  fetched: Schema.Int.annotateKey({
    description: "Missing ones that were fetched and are events now."
  }),
  asked: Schema.Int.annotateKey({
    description: "Missing ones that the provider was asked to send again."
  }),
  tooOld: Schema.Int.annotateKey({
    description:
      "Not known, because neither INTAKE nor EVENTS goes back so far. They are not fetched."
  }),
  missingIds: Schema.Array(Schema.String).annotateKey({
    description: "The first missing ones, by their ids at the provider."
  }),
  problem: Schema.optionalKey(Schema.String).annotateKey({
    description:
      "Why the first of the events that were neither fetched nor asked for could not be fetched."
  })
})
export type Reconciliation = typeof Reconciliation.Type
