/** What a client logs in to the broker with, where its address says it. */
export type Login = { readonly user: string; readonly pass: string } | { readonly token: string }

/** An address of one or more servers, taken apart. */
export interface BrokerAddress {
  /** Host, with its port where one was given. */
  readonly servers: ReadonlyArray<string>
  readonly tls: boolean
  readonly login: Login | undefined
}

interface Part {
  /** Such as `nats://`, or empty. */
  readonly scheme: string
  /** All in front of the last `@`. */
  readonly login: string | undefined
  readonly hosts: ReadonlyArray<string>
}

/**
 * Takes an address apart, for those who read it and for those who show it: what one takes for a
 * password the other must not show. A password may contain commas, slashes and `@`, so a part ends
 * only where another scheme begins, and its login is all in front of its last `@`.
 */
const partsOf = (text: string): ReadonlyArray<Part> =>
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

/** A `%` that begins no escape stands for itself. */
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
 * Reads one address or several with commas, such as `nats://user:password@127.0.0.1:4222`: where
 * several have a login, the first one counts. Undefined where it is none.
 */
export const readAddress = (text: string): BrokerAddress | undefined => {
  const parts = partsOf(text)
  const isPossible = ({ hosts, scheme }: Part) =>
    ["", "nats://", "tls://"].includes(scheme) && hosts.every(isHost)
  if (!parts.every(isPossible)) return undefined
  const login = parts.find((part) => part.login !== undefined && part.login !== "")?.login
  return {
    servers: parts.flatMap(({ hosts }) => hosts.map((host) => host.replace(/\/$/, ""))),
    tls: parts.some(({ scheme }) => scheme === "tls://"),
    login: login === undefined ? undefined : loginOf(login)
  }
}

/** An address as it may be shown, also one that cannot be read: without user, password and token. */
export const shownAddress = (text: string): string =>
  partsOf(text)
    .map(({ hosts, scheme }) => {
      const areHosts = hosts.every((host) => host === "" || hostAndPort.test(host))
      // What is none may be a password whose `@` is missing.
      return `${scheme}${areHosts ? hosts.join(",") : "…"}`
    })
    .join(",")

const mask = "********"
/** A password with fewer characters is not looked for in what others say: it would leave nothing of it. */
const shortest = 3

/** What somebody else says about an address, such as the client in an error, without its login. */
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
