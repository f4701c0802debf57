import { readFileSync } from "node:fs"
import { createSecureContext } from "node:tls"
import type { NodeConnectionOptions } from "@nats-io/transport-node"
import { credsAuthenticator, nkeyAuthenticator, nkeys } from "@nats-io/transport-node"
import { Option, Result, Schema } from "effect"
import { present } from "../domain/record.ts"
import { timers } from "../time/timers.ts"
import type { BrokerAddress } from "./address.ts"

/** Paths of the files with the client's credentials and trusted certificates. */
export interface CredentialFiles {
  /** A user's JWT and seed, as nsc writes them. */
  readonly creds?: string | undefined
  /** A user's seed. */
  readonly nkey?: string | undefined
  /** PEM: certificates of the authorities that the broker's certificate is checked against. */
  readonly ca?: string | undefined
  /** PEM: the client's own certificate, and its key. */
  readonly cert?: string | undefined
  readonly key?: string | undefined
}

type Kind = keyof CredentialFiles

/** The flag that names a file, and the environment variable for it. */
const flags: Record<Kind, readonly [flag: string, variable: string]> = {
  creds: ["--creds", "NATS_CREDS"],
  nkey: ["--nkey", "NATS_NKEY"],
  ca: ["--nats-ca", "NATS_CA"],
  cert: ["--nats-cert", "NATS_CERT"],
  key: ["--nats-key", "NATS_KEY"]
}

const named = (kind: Kind): string => `${flags[kind][0]} (${flags[kind][1]})`

/** Returns a sentence if kinds of login cannot be combined or one of a pair is missing. */
const conflict = ({ login }: BrokerAddress, files: CredentialFiles): string | undefined => {
  const { cert, creds, key, nkey } = files
  if (creds !== undefined && nkey !== undefined)
    return `${named("creds")} and ${named("nkey")} cannot be combined`
  const kind = creds !== undefined ? "creds" : nkey !== undefined ? "nkey" : undefined
  if (login !== undefined && kind !== undefined)
    return `the broker's address has a login, which cannot be combined with ${named(kind)}: leave one of them out`
  if ((cert === undefined) !== (key === undefined))
    return `--nats-cert and --nats-key go together: ${named(cert === undefined ? "cert" : "key")} is missing`
  return undefined
}

const reasons = new Map<unknown, string>([
  ["ENOENT", "there is no such file"],
  ["EISDIR", "it is a directory"],
  ["EACCES", "its permissions do not let you"]
])

export const unreadable = (error: unknown): string => {
  const code = error instanceof Error && "code" in error ? error.code : undefined
  return reasons.get(code) ?? (error instanceof Error ? error.message : String(error))
}

const read = (kind: Kind, path: string): Result.Result<Buffer, string> =>
  Result.try({
    try: () => readFileSync(path),
    catch: (error) => `${flags[kind][0]} ${path} cannot be read: ${unreadable(error)}`
  })

/** Finds a user's seed in the lines of a file. */
const seedIn = (content: Uint8Array): Uint8Array | undefined => {
  const seed = /\bSU[A-Z2-7]{56}\b/.exec(Buffer.from(content).toString("latin1"))?.[0]
  if (seed === undefined) return undefined
  const bytes = Buffer.from(seed)
  return Result.isSuccess(Result.try(() => nkeys.fromSeed(bytes))) ? bytes : undefined
}

const credsIn = (content: Uint8Array): Uint8Array | undefined =>
  Result.isSuccess(Result.try(() => credsAuthenticator(content)("nonce"))) ? content : undefined

const decodeExpiry = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ exp: Schema.Number }))
)

/** Returns a clause about when credentials expired, if they have; "" if not, or if it cannot be read. */
export const expiryText = (path: string): string => {
  const content = Result.map(read("creds", path), (bytes) => bytes.toString("latin1"))
  const claims = /^[\w-]+\.([\w-]+)\.[\w-]+\s*$/m.exec(Result.getOrElse(content, () => ""))?.[1]
  const expiry = decodeExpiry(Buffer.from(claims ?? "", "base64url").toString())
  if (Option.isNone(expiry) || expiry.value.exp * 1_000 > timers.wallMs()) return ""
  const at = new Date(expiry.value.exp * 1_000).toISOString()
  return `, which expired at ${at}: put renewed ones into the file`
}

/**
 * Returns a function that reads a file again at each connection, because credentials expire and are
 * renewed. If the file cannot be read then, the function returns the last contents.
 */
const fresh = (
  kind: Kind,
  path: string,
  parse: (content: Uint8Array) => Uint8Array | undefined,
  problem: string
): Result.Result<() => Uint8Array, string> =>
  Result.flatMap(read(kind, path), (content) => {
    const first = parse(content)
    if (first === undefined) return Result.fail(`${flags[kind][0]} ${path} ${problem}`)
    let last = first
    return Result.succeed(() => {
      const again = Result.map(read(kind, path), parse)
      if (Result.isSuccess(again)) last = again.success ?? last
      return last
    })
  })

type ConnectionLogin = Pick<NodeConnectionOptions, "authenticator" | "user" | "pass" | "token">

const loginOf = (
  { login }: BrokerAddress,
  { creds, nkey }: CredentialFiles
): Result.Result<ConnectionLogin, string> => {
  if (creds !== undefined)
    return Result.map(
      fresh(
        "creds",
        creds,
        credsIn,
        "holds no credentials: they are what nsc writes, a JWT and a seed"
      ),
      (content) => ({ authenticator: credsAuthenticator(content) })
    )
  if (nkey !== undefined)
    return Result.map(
      fresh(
        "nkey",
        nkey,
        seedIn,
        "holds no nkey of a user: that is its seed, which begins with SU"
      ),
      (seed) => ({ authenticator: nkeyAuthenticator(seed) })
    )
  return Result.succeed(login ?? {})
}

/**
 * Checks the files before the client reads them: the client's errors say less about what is wrong.
 */
const tlsOf = (
  { tls }: BrokerAddress,
  { ca, cert, key }: CredentialFiles
): Result.Result<Pick<NodeConnectionOptions, "tls">, string> => {
  if (!tls && ca === undefined && cert === undefined) return Result.succeed({})
  const contents: { ca?: Buffer; cert?: Buffer; key?: Buffer } = {}
  for (const [kind, path] of [
    ["ca", ca] as const,
    ["cert", cert] as const,
    ["key", key] as const
  ]) {
    if (path === undefined) continue
    const content = read(kind, path)
    if (Result.isFailure(content)) return Result.fail(content.failure)
    if (kind !== "key" && !content.success.includes("-----BEGIN CERTIFICATE-----"))
      return Result.fail(`${flags[kind][0]} ${path} holds no certificate in PEM`)
    contents[kind] = content.success
  }
  const context = Result.try(() => createSecureContext(contents))
  if (Result.isFailure(context))
    return Result.fail(
      cert === undefined
        ? `--nats-ca ${ca} holds a certificate that cannot be read`
        : `--nats-cert and --nats-key do not go together: ${cert} must be a certificate, and ${key} the key that it was made for, without a password`
    )
  return Result.succeed({
    tls: {
      ...present({ caFile: ca, certFile: cert, keyFile: key })
    }
  })
}

/**
 * Returns the login and the TLS options, from the address and the files together.
 *
 * Fails with a sentence about the problem; it shows nothing of the contents of the files.
 */
export const credentialsOf = (
  address: BrokerAddress,
  files: CredentialFiles
): Result.Result<ConnectionLogin & Pick<NodeConnectionOptions, "tls">, string> => {
  const problem = conflict(address, files)
  if (problem !== undefined) return Result.fail(problem)
  return Result.flatMap(loginOf(address, files), (login) =>
    Result.map(tlsOf(address, files), (tls) => ({ ...login, ...tls }))
  )
}
