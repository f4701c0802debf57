import { randomBytes } from "node:crypto"
import { Clock, Effect, Result } from "effect"
import type { Source } from "../../../domain/source.ts"
import { GatewayCounts } from "../../../intake/gateway/counts.ts"
import { maxConnections, serveGateway } from "../../../intake/gateway/listen.ts"
import { providerOf } from "../../../intake/source-provider.ts"
import { addSource, getSource } from "../../../intake/source-store.ts"
import { sourcePath } from "../../../operations/sources/manage-sources.ts"
import { gatewayFiles } from "../../../policy/open-files.ts"
import { type OpenFiles, serverConnections } from "../../open-files.ts"
import { sample, sampleBy } from "./welcome.ts"

/** A source whose webhooks `petrel dev` takes in. */
export interface DevSource {
  readonly provider: string
  /** Where the provider posts. */
  readonly url: string
  /** What the provider signs with. */
  readonly secret: string
}

/** Where webhooks come in, unless something else listens there. */
const usualPort = 8088

const noCertificate = () => Promise.reject(new Error("nothing is verified here"))

/** Returns a source of the sample's tenant with a secret of its own. */
const newSource = (provider: string, now: number): Source => ({
  ...{ v: 1, tenant: sample.tenant, id: provider, provider },
  secrets: [{ value: `whsec_${randomBytes(24).toString("base64")}`, createdAt: now }],
  createdAt: now,
  updatedAt: now
})

/** Returns why `petrel dev` cannot make a source of a provider, as a sentence; undefined if it can. */
export const devSourceProblem = (provider: string): string | undefined => {
  const made = providerOf(newSource(provider, 0), 0, noCertificate)
  if (Result.isSuccess(made)) return undefined
  return made.failure[0]?.startsWith("there is no provider") === true
    ? `--source: ${made.failure[0]}`
    : `--source ${provider} needs settings of its own: add it with \`petrel source add\`, and run \`petrel ingest\``
}

/**
 * Takes in webhooks of providers for the sample's tenant until the scope closes. Adds a source of each
 * provider, with a secret of its own, where there is none.
 *
 * @param isAnyPort takes a free port.
 */
export const serveDevSources = Effect.fnUntraced(function* (
  providers: ReadonlyArray<string>,
  isAnyPort: boolean,
  open: OpenFiles
) {
  if (providers.length === 0) return []
  const now = yield* Clock.currentTimeMillis
  const stored = yield* Effect.forEach(providers, (provider) =>
    Effect.catchTag(getSource({ tenant: sample.tenant, id: provider }), "SourceNotFound", () =>
      addSource(newSource(provider, now), sampleBy)
    )
  )
  const connections = yield* serverConnections(maxConnections, gatewayFiles, open)
  const serve = (port: number) =>
    serveGateway({ host: "127.0.0.1", port, counts: new GatewayCounts(), ...connections })
  const { port } = isAnyPort
    ? yield* serve(0)
    : yield* Effect.catchTag(serve(usualPort), "ListenRefused", () => serve(0))
  return stored.map(
    ({ source }): DevSource => ({
      provider: source.provider,
      url: `http://127.0.0.1:${port}${sourcePath(source)}`,
      secret: source.secrets[0]?.value ?? ""
    })
  )
})

/** Returns what `petrel dev` says of its sources. */
export const sourceLines = (sources: ReadonlyArray<DevSource>): ReadonlyArray<string> =>
  sources.flatMap(({ provider, secret, url }) => [
    `Webhooks of ${provider} come in at ${url}, signed with`,
    `  ${secret}`
  ])
