import type { Endpoint } from "../../domain/endpoint.ts"
import { endpointSettings } from "../../domain/settings/endpoint-table.ts"
import { withoutCredentials } from "../../domain/settings/setting.ts"
import type { Asker } from "../caller.ts"
import { endpointLabel } from "./endpoint-settings.ts"

/** True where requests go to another origin after a change than before. */
const movesFrom = (before: Endpoint, url: string): boolean =>
  before.url !== "" && url !== "" && new URL(before.url).origin !== new URL(url).origin

/**
 * Returns an endpoint as a change of it by somebody begins. Who may not see credentials may not
 * send them elsewhere either, where their values could be read: with another origin, only those
 * that the change itself gives remain.
 *
 * @param url of the endpoint after the change.
 */
export const mayKeepCredentials = (
  before: Endpoint,
  url: string,
  { scopes }: Pick<Asker, "scopes">
): Endpoint =>
  movesFrom(before, url) && !scopes.includes("secrets:read")
    ? withoutCredentials(endpointSettings, before)
    : before

const listed = (names: ReadonlyArray<string>): string =>
  names.length < 2 ? (names[0] ?? "") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`

/** Returns what to know where a change leads to another origin. */
export const originCautions = (before: Endpoint, after: Endpoint): ReadonlyArray<string> => {
  if (!movesFrom(before, after.url)) return []
  const { origin } = new URL(after.url)
  const left = new Set(Object.keys(after.headers).map((name) => name.toLowerCase()))
  const dropped = Object.keys(before.headers).filter((name) => !left.has(name.toLowerCase()))
  const kept = Object.keys(before.headers).filter(
    (name) => before.headers[name] === after.headers[name]
  )
  const isShared =
    after.sign !== "standard-ed25519" &&
    before.secrets.some(({ value }) => after.secrets.some((secret) => secret.value === value))
  return [
    ...(dropped.length === 0
      ? []
      : [
          `requests go to another origin, so the headers ${listed(dropped)} are dropped: give them again if ${origin} is to get them`
        ]),
    ...(kept.length === 0
      ? []
      : [`${origin} gets its headers ${listed(kept)}, too: remove those that it must not know`]),
    ...(isShared
      ? [
          `the signing secret is the one that ${new URL(before.url).origin} knows: rotate it if the new receiver is somebody else's (\`petrel endpoint rotate ${endpointLabel(after)}\`)`
        ]
      : [])
  ]
}
