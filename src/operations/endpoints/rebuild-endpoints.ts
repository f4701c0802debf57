import { Clock, Effect, Result, Schema } from "effect"
import type { Configuration } from "../../domain/configuration.ts"
import { urlDigest } from "../../domain/configuration.ts"
import type { EndpointJson, Secret } from "../../domain/endpoint.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import { endpointSettings } from "../../domain/settings/endpoint-table.ts"
import { isFullyTold } from "../../domain/settings/setting.ts"
import { addEndpoint } from "../../endpoints/endpoint-store.ts"
import { decodeEndpoint } from "../../endpoints/endpoint-value.ts"
import type { LostEndpoint } from "../../endpoints/lost-endpoints.ts"
import { readLostEndpoints, readLostSettings } from "../../endpoints/lost-endpoints.ts"
import { changeSettings } from "../../endpoints/settings-store.ts"
import { secretsFor } from "./endpoint-secrets.ts"
import { endpointLabel } from "./endpoint-settings.ts"

/** An endpoint, or a tenant's settings, made again from the history. */
export const RebuiltEndpoint = Schema.Struct({
  /** `<tenant>/<endpoint>`, or the tenant whose settings it is (`_`: the system's). */
  endpoint: Schema.String,
  /** What the history does not hold, as flags of `petrel endpoint set`. It is paused if there is any. */
  gone: Schema.Array(Schema.String),
  /** Why it cannot be made again. */
  problem: Schema.optionalKey(Schema.String),
  /** False for a dry run, and where it cannot be made again. */
  written: Schema.Boolean
})
export type RebuiltEndpoint = typeof RebuiltEndpoint.Type

/** The settings that the history tells wholly. */
const wholly = Object.entries(endpointSettings).flatMap(([name, setting]) =>
  isFullyTold(setting) ? [name] : []
)

/** What the history does not hold of a configuration, as flags that set it. */
const goneOf = (told: Configuration, url: string): ReadonlyArray<string> => [
  ...(urlDigest(url) === told.urlDigest ? [] : ["--url"]),
  ...(told.sign === "none" ? [] : ["--secret"]),
  ...told.headers.map((name) => `--header '${name}: …'`)
]

/** Returns an endpoint as far as the history holds it: paused if something of it is gone. */
const remade = (
  { configuration: told, endpoint: id, storedAt, tenant }: LostEndpoint,
  secrets: ReadonlyArray<Secret>,
  by: string,
  now: number
) => {
  const url = `${told.origin}/`
  const gone = goneOf(told, url)
  const known = Object.fromEntries(Object.entries(told).filter(([name]) => wholly.includes(name)))
  const { disabled, generation, paused, suspended } = told
  const reason = `made again without ${gone.join(", ")}: set them, then resume it`
  const json: Partial<EndpointJson> = {
    v: 1,
    tenant,
    id,
    generation,
    ...known,
    url,
    headers: {},
    secrets,
    ...(disabled === undefined ? {} : { disabled }),
    ...(suspended === undefined ? {} : { suspended }),
    ...(gone.length > 0
      ? { paused: { at: now, by, reason } }
      : paused === undefined
        ? {}
        : { paused }),
    createdAt: Math.min(storedAt, ...told.secrets.map(({ createdAt }) => createdAt)),
    updatedAt: now
  }
  return { gone, decoded: decodeEndpoint(endpointKey(tenant, id), JSON.stringify(json)) }
}

/**
 * Makes again the endpoints and settings that were lost with a former bucket, from the history. It
 * holds neither secrets nor values of headers, and of a URL only the origin: an endpoint that lacks
 * one gets a new secret and is paused, so that its deliveries wait until somebody has set the rest.
 *
 * @param by who asks for it, recorded in the history.
 */
export const rebuildEndpoints = Effect.fnUntraced(function* ({
  by,
  dryRun
}: {
  readonly by: string
  readonly dryRun: boolean
}) {
  const rebuilt: Array<RebuiltEndpoint> = []
  const now = yield* Clock.currentTimeMillis
  for (const { change, key } of yield* readLostSettings) {
    if (!dryRun)
      yield* changeSettings(key, () => Effect.succeed({ v: 1, ...change.now, updatedAt: now }), by)
    rebuilt.push({ endpoint: key, gone: [], written: !dryRun })
  }
  for (const lost of yield* readLostEndpoints) {
    const { secrets } = yield* secretsFor(lost.configuration.sign, [], undefined, now)
    const { decoded, gone } = remade(lost, secrets, by, now)
    const endpoint = endpointLabel({ tenant: lost.tenant, id: lost.endpoint })
    if (Result.isFailure(decoded)) {
      rebuilt.push({ endpoint, gone, problem: decoded.failure.message, written: false })
      continue
    }
    // Somebody may have added it meanwhile.
    if (!dryRun)
      yield* addEndpoint(decoded.success, by).pipe(
        Effect.catchTag("EndpointExists", () => Effect.void)
      )
    rebuilt.push({ endpoint, gone, written: !dryRun })
  }
  return rebuilt
})
