import { Clock, Duration, Effect, Result, Schema } from "effect"
import { RefusingSource, readGatewayReports } from "../../cluster/gateway-reports.ts"
import { forgetReconcileReport, readReconcileReport } from "../../cluster/reconcile-reports.ts"
import { documentedAs } from "../../domain/documented-check.ts"
import { durationBetween, longestDuration } from "../../domain/duration.ts"
import { Secret } from "../../domain/endpoint.ts"
import {
  type ExpectedRevision,
  Invalid,
  invalid,
  notNow,
  type Problem
} from "../../domain/problem.ts"
import { Reconciliation } from "../../domain/reconciliation.ts"
import { mask } from "../../domain/settings/endpoint-table.ts"
import { Source, type SourceName, sourceLabel, sourceSettings } from "../../domain/source.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { checkAccount } from "../../intake/source-account.ts"
import { providerOf, secretsHoldUntil } from "../../intake/source-provider.ts"
import {
  changeSource,
  getSource,
  listSources as list,
  removeSource as remove,
  type StoredSource,
  addSource as store
} from "../../intake/source-store.ts"
import { listings } from "../../providers/listings/listings.ts"
import { type KnownProvider, providers } from "../../providers/providers.ts"
import type { ProviderSettingName } from "../../providers/settings.ts"
import { rotatedSecrets } from "../endpoints/endpoint-secrets.ts"
import { RateChoice } from "../endpoints/endpoint-settings.ts"

/** Sources that a tenant may have: each is in the memory of all gateways. */
export const maxSources = 100
/** Secrets of a source that hold at the same time. */
const maxSecrets = 10

const given = { ...sourceSettings, rate: Schema.optionalKey(RateChoice) }

/** Returns the names of the providers that take each setting which only some of them take. */
export const providersBySetting = () => {
  const namesOf = (takes: (provider: KnownProvider) => boolean) =>
    [...providers.values()].filter(takes).map(({ name }) => name)
  const taking = (setting: ProviderSettingName) =>
    namesOf(({ settings }) => settings.some(({ name }) => name === setting))
  const listed = namesOf(({ name }) => listings.has(name))
  return {
    secrets: taking("secrets"),
    tolerance: taking("toleranceMs"),
    publicUrl: taking("publicUrl"),
    webhookId: [...new Set([...taking("webhookId"), ...listed])],
    verifyToken: taking("verifyToken"),
    scheme: taking("scheme"),
    apiKey: listed,
    apiUrl: listed,
    reconcile: listed
  }
}

const ProviderName = Schema.String.check(documentedAs({ enum: [...providers.keys()] }))

/** A source that is to be added. */
export const NewSource = Schema.Struct({
  provider: ProviderName.annotateKey({ description: "The name of the provider." }),
  secrets: Schema.optionalKey(
    Schema.Array(Schema.String).check(Schema.isMinLength(1), Schema.isMaxLength(maxSecrets))
  ).annotateKey({ description: "What the provider signs with, or its public keys." }),
  ...given
})
export type NewSource = typeof NewSource.Type

const orNull = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** A change of a source: what is left out stays as it is, null removes a setting. */
export const SourcePatch = Schema.Struct({
  tolerance: orNull(sourceSettings.tolerance.schema),
  publicUrl: orNull(Schema.String),
  webhookId: orNull(Schema.String),
  verifyToken: orNull(Schema.String),
  scheme: orNull(sourceSettings.scheme.schema),
  rate: orNull(RateChoice),
  apiKey: orNull(sourceSettings.apiKey.schema),
  apiUrl: orNull(Schema.String),
  reconcile: orNull(sourceSettings.reconcile.schema),
  reconcileTypes: orNull(sourceSettings.reconcileTypes.schema),
  alertAbove: orNull(sourceSettings.alertAbove.schema)
})
export type SourcePatch = typeof SourcePatch.Type

/** A new secret of a source. */
export const SourceRotation = Schema.Struct({
  secret: Schema.String,
  /** How long the old ones verify, too. Zero drops them at once. */
  keepOld: durationBetween([0, "0 seconds"], longestDuration)
})
export type SourceRotation = typeof SourceRotation.Type

/** A source, with its secrets masked. */
export const SourceView = Schema.Struct({
  ...Source.fields,
  secrets: Schema.Array(Secret),
  path: Schema.String.annotateKey({
    description: "The path to which the provider posts, on a gateway."
  }),
  revision: Schema.Int.annotateKey({ description: "The revision of its configuration." }),
  /** What its last reconciliation has found: where one source is shown. */
  reconciled: Schema.optionalKey(
    Schema.Struct({
      ...Reconciliation.fields,
      at: Timestamp.annotateKey({ description: "When it ended." }),
      failed: Schema.optionalKey(Schema.String).annotateKey({
        description: "Why it was interrupted; absent if it was not."
      })
    })
  ),
  /** The gateways that refuse every request of it: where one source is shown. */
  refusing: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        host: Schema.String.annotateKey({ description: "The gateway's host." }),
        reason: RefusingSource.fields.reason,
        since: RefusingSource.fields.since
      })
    )
  )
})
export type SourceView = typeof SourceView.Type

/** Returns the path of a source on a gateway. */
export const sourcePath = ({ id, tenant }: SourceName): string => `/in/${tenant}/${id}`

const viewOf = ({ revision, source }: StoredSource): SourceView => ({
  ...source,
  ...(source.verifyToken === undefined ? {} : { verifyToken: mask }),
  ...(source.apiKey === undefined ? {} : { apiKey: mask }),
  secrets: source.secrets.map((secret) => ({ ...secret, value: mask })),
  path: sourcePath(source),
  revision
})

/** Returns the problem of a field that a provider's sentence names; it calls one otherwise. */
const problemIn = (sentence: string): Problem => {
  const [, name = "", rest = sentence] = /^`(\w+)` (.*)$/s.exec(sentence) ?? []
  return { field: name === "toleranceMs" ? "tolerance" : name, message: rest }
}

const noCertificate = () => Promise.reject(new Error("no certificate is fetched to check settings"))

/**
 * Returns what is wrong with a source's account at the provider's API: all that is missing where it
 * is to be asked by schedule, else what is wrong with what is there.
 */
const accountProblems = (source: Source) => {
  const { apiKey, apiUrl, reconcile, webhookId } = source
  const given = { apiKey, apiUrl, webhookId }
  const isAsked = reconcile !== undefined
  if (!isAsked && apiKey === undefined && apiUrl === undefined && !listings.has(source.provider))
    return []
  const checked = checkAccount(source, true)
  return Result.isSuccess(checked)
    ? []
    : checked.failure.filter(
        ({ field }) => isAsked || field === "" || given[field as keyof typeof given] !== undefined
      )
}

/** True if two sources ask APIs of different origins. */
const leadsElsewhere = (before: Pick<Source, "apiUrl" | "provider">, after: Partial<Source>) => {
  const originOf = (url = listings.get(before.provider)?.url) =>
    url !== undefined && URL.canParse(url) ? new URL(url).origin : undefined
  return originOf(before.apiUrl) !== originOf(after.apiUrl)
}

/** Fails with Invalid if a source's provider cannot work with its settings. */
const checked = Effect.fnUntraced(function* (source: Source, now: number) {
  const made = providerOf(source, now, noCertificate)
  const problems = [
    ...(Result.isSuccess(made) ? [] : made.failure).map(problemIn),
    ...accountProblems(source)
  ]
  return problems.length === 0 ? source : yield* new Invalid({ problems })
})

/** Lists the sources of a tenant, or of all, in the order of their names. */
export const listSources = (tenant?: string) =>
  Effect.map(list(tenant), (stored) => stored.map(viewOf))

/** Shows a source. Fails with SourceNotFound. */
export const showSource = Effect.fnUntraced(function* (name: SourceName) {
  const view = viewOf(yield* getSource(name))
  const refusing = (yield* readGatewayReports).flatMap(({ host, refusing: all }) =>
    all
      .filter(({ source, tenant }) => tenant === name.tenant && source === name.id)
      .map(({ reason, since }) => ({ host, reason, since }))
  )
  const shown: SourceView = refusing.length === 0 ? view : { ...view, refusing }
  const report = yield* readReconcileReport(name)
  if (report === undefined) return shown
  const { endedAt: at, found, problem } = report
  const reconciled = { at, ...found, ...(problem === undefined ? {} : { failed: problem }) }
  return { ...shown, reconciled } satisfies SourceView
})

/**
 * Adds a source. Fails with Invalid for settings that its provider does not take, and where its
 * tenant has as many as it may have.
 *
 * @param by who adds it, recorded in the history.
 */
export const addSource = Effect.fnUntraced(function* (
  name: SourceName,
  { secrets = [], ...settings }: NewSource,
  by: string
) {
  const now = yield* Clock.currentTimeMillis
  const source = yield* checked(
    {
      ...{ v: 1, ...name, ...settings },
      secrets: secrets.map((value) => ({ value, createdAt: now })),
      createdAt: now,
      updatedAt: now
    },
    now
  )
  if ((yield* list(name.tenant)).length >= maxSources)
    return yield* new Invalid({
      problems: [
        {
          field: "",
          message: `${name.tenant} has ${maxSources} sources, which is the maximum: remove some`
        }
      ]
    })
  return viewOf(yield* store(source, by))
})

/**
 * Changes the given settings of a source and keeps the others.
 *
 * @param by who changes them, recorded in the history.
 * @param expected the revisions that may be changed; fails with OtherRevision for another. (Default:
 *   any)
 */
export const setSource = Effect.fnUntraced(function* (
  name: SourceName,
  patch: SourcePatch,
  by: string,
  expected?: ExpectedRevision
) {
  const now = yield* Clock.currentTimeMillis
  const stored = yield* changeSource(
    name,
    (before) => {
      const settings = Object.entries({ ...before, ...patch, updatedAt: now })
      const after = Object.fromEntries(settings.filter(([, value]) => value !== null))
      if (
        patch.apiKey === undefined &&
        before.apiKey !== undefined &&
        leadsElsewhere(before, after)
      )
        return invalid(
          "apiKey",
          "must be given again where `apiUrl` leads to another host: the stored one is not sent there"
        )
      return checked(after as unknown as Source, now)
    },
    by,
    expected
  )
  return viewOf(stored)
})

/**
 * Returns why a rotation is refused that leaves more secrets than hold at the same time: none of them
 * may be dropped, as the provider may still sign with it.
 */
const tooManySecrets = (before: Source, now: number) => {
  const nextEnd = secretsHoldUntil(before, now)
  const wait =
    nextEnd === undefined ? "" : `wait until ${new Date(nextEnd).toISOString()}, when one ends, or `
  return notNow(
    `${sourceLabel(before)} has ${maxSecrets} secrets that verify, which is the maximum: ${wait}keep old ones for 0s, which drops all of them at once`
  )
}

/**
 * Gives a source a new secret, or goes back to an old one. The others hold for a while.
 *
 * @param by who does, recorded in the history.
 * @param expected as in `setSource`.
 */
export const rotateSource = Effect.fnUntraced(function* (
  name: SourceName,
  { keepOld, secret }: SourceRotation,
  by: string,
  expected?: ExpectedRevision
) {
  const now = yield* Clock.currentTimeMillis
  const stored = yield* changeSource(
    name,
    Effect.fnUntraced(function* (before) {
      if (before.secrets[0]?.value === secret)
        return yield* invalid("secret", `is the one that ${sourceLabel(name)} has already`)
      const secrets = rotatedSecrets(before.secrets, secret, Duration.toMillis(keepOld), now)
      if (secrets.length > maxSecrets) return yield* tooManySecrets(before, now)
      return yield* checked({ ...before, secrets, updatedAt: now }, now)
    }),
    by,
    expected
  )
  return viewOf(stored)
})

/**
 * Removes a source: what its provider sends from then on is refused.
 *
 * @param by who removes it, recorded in the history.
 * @param expected as in `setSource`.
 */
export const removeSource = Effect.fnUntraced(function* (
  name: SourceName,
  by: string,
  expected?: ExpectedRevision
) {
  const { id, provider, tenant } = (yield* remove(name, by, expected)).source
  yield* forgetReconcileReport(name)
  return { tenant, id, provider }
})
