/** The login in a broker address. */
type Login = { readonly user: string; readonly pass: string } | { readonly token: string }

/** A parsed address of one or more servers. */
export interface BrokerAddress {
  /** Host, with its port where one was given. */
  readonly servers: ReadonlyArray<string>
  readonly tls: boolean
  readonly login: Login | undefined
}

interface AddressPart {
  /** Such as `nats://`, or empty. */
  readonly scheme: string
  /** Everything before the last `@`. */
  readonly login: string | undefined
  readonly hosts: ReadonlyArray<string>
}

/**
 * Splits an address into parts, for reading and for display alike: what the one takes for a
 * password, the other must hide. A password may contain commas, slashes and `@`. So a part ends
 * only before the next scheme, and its login is everything before its last `@`.
 */
const partsOf = (text: string): ReadonlyArray<AddressPart> =>
  text
    .trim()
    .split(/,\s*(?=[a-z]+:\/\/)/i)
    .map((part) => {
      const scheme = /^[a-z]+:\/\//i.exec(part)?.[0] ?? ""
      const rest = part.slice(scheme.length)
      const at = rest.lastIndexOf("@")
      return {
        scheme: scheme.toLowerCase(),
        login: at === -1 ? undefined : rest.slice(0, at),
        hosts: rest
          .slice(at + 1)
          .split(",")
          .map((host) => host.trim())
      }
    })

const hostAndPort = /^(\[[0-9a-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?\/?$/i

const isHost = (text: string): boolean => {
  const match = hostAndPort.exec(text)
  return match !== null && Number(match[2] ?? 0) < 2 ** 16
}

/** A `%` that begins no escape is taken literally. */
const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const loginOf = (text: string): Login => {
  const colon = text.indexOf(":")
  return colon === -1
    ? { token: decoded(text) }
    : { user: decoded(text.slice(0, colon)), pass: decoded(text.slice(colon + 1)) }
}

/**
 * Reads one address, or several separated by commas, such as `nats://user:password@127.0.0.1:4222`.
 * If several have a login, the first one counts. Returns undefined if the text is no address.
 */
export const readAddress = (text: string): BrokerAddress | undefined => {
  const parts = partsOf(text)
  const isPossible = ({ hosts, scheme }: AddressPart) =>
    ["", "nats://", "tls://"].includes(scheme) && hosts.every(isHost)
  if (!parts.every(isPossible)) return undefined
  const login = parts.find((part) => part.login !== undefined && part.login !== "")?.login
  return {
    servers: parts.flatMap(({ hosts }) => hosts.map((host) => host.replace(/\/$/, ""))),
    tls: parts.some(({ scheme }) => scheme === "tls://"),
    login: login === undefined ? undefined : loginOf(login)
  }
}

/**
 * Returns an address without user, password and token, for display. Also accepts one that cannot be
 * parsed.
 */
export const shownAddress = (text: string): string =>
  partsOf(text)
    .map(({ hosts, scheme }) => {
      const areHosts = hosts.every((host) => host === "" || hostAndPort.test(host))
      // A part that is no host may be a password without its `@`.
      return `${scheme}${areHosts ? hosts.join(",") : "…"}`
    })
    .join(",")

const mask = "********"
/**
 * Shorter passwords are not masked in messages of others: masking them would leave nothing
 * readable.
 */
const shortest = 3

/**
 * Masks the login of an address in a message that is not Petrel's own, such as an error of the
 * client.
 */
export const withoutLogin = (message: string, address: string): string => {
  const logins = partsOf(address).flatMap(({ login }) => (login === undefined ? [] : [login]))
  const secrets = logins
    .flatMap((login) => [login, login.slice(login.indexOf(":") + 1)])
    .flatMap((secret) => [secret, decoded(secret)])
    .filter(({ length }) => length >= shortest)
    .sort((one, other) => other.length - one.length)
  return secrets.reduce(
    (said, secret) => said.replaceAll(secret, mask),
    message.replaceAll(address, shownAddress(address))
  )
}
