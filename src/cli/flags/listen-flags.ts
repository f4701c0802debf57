import { createPrivateKey, X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { createSecureContext } from "node:tls"
import { Clock, Effect, Option, Result } from "effect"
import { Flag } from "effect/cli"
import { timeText } from "../../domain/timestamp.ts"
import type { ListenRefused } from "../../metrics/listen.ts"
import { Refused } from "../refused.ts"
import { textFlag } from "./shared.ts"

/**
 * `--listen`: where a command listens.
 *
 * @param read parses it; undefined where it is refused.
 */
export const listenFlag = <A>(
  description: string,
  usual: string,
  read: (text: string) => A | undefined
): Flag.Flag<A> =>
  Flag.String("listen").pipe(
    Flag.withMetavar("HOST:PORT"),
    Flag.withDescription(description),
    Flag.withDefault(usual),
    Flag.filterMap(
      (text) => Option.fromUndefinedOr(read(text)),
      () => `must be an address and a port, such as ${usual}`
    )
  )

/**
 * Returns the refusal of an address that cannot be used.
 *
 * @param example another one.
 */
export const notListening = (
  { code, message }: ListenRefused,
  listen: string,
  example: string
): Refused => {
  const sentences: Readonly<Record<string, string>> = {
    EADDRINUSE: `something listens on ${listen} already: choose another address with --listen, such as ${example}`,
    EADDRNOTAVAIL: `this machine has no address ${listen}: choose another with --listen`,
    ENOTFOUND: `this machine has no address ${listen}: choose another with --listen`,
    EACCES: `this user may not listen on ${listen}: choose another with --listen`
  }
  const other = `nothing can listen on ${listen} (${message}): choose another address with --listen`
  return new Refused({ message: sentences[code] ?? other })
}

/** The certificate and the key of a command that listens. */
export const tlsFlags = {
  cert: textFlag("tls-cert", "FILE", "Its certificate in PEM, with the intermediate ones"),
  key: textFlag("tls-key", "FILE", "The certificate's key in PEM")
}

/** Certificate and key, in PEM. */
interface Tls {
  readonly cert: string
  readonly key: string
}

const readPem = (flag: string, path: string): Result.Result<string, string> =>
  Result.mapError(
    Result.try(() => readFileSync(path, "utf8")),
    (cause) => `--${flag} ${path} cannot be read (${String(cause)})`
  )

const fails = (run: () => unknown): boolean => Result.isFailure(Result.try(run))

/** Returns why no server can use a certificate and a key of these files. OpenSSL names neither the file nor the remedy. */
const problemOf = (pem: Tls, cert: string, key: string): string | undefined => {
  if (fails(() => new X509Certificate(pem.cert)))
    return `--tls-cert ${cert} has no certificate in PEM`
  if (fails(() => createPrivateKey(pem.key)))
    return pem.key.includes("ENCRYPTED")
      ? `--tls-key ${key} is encrypted: give it without a passphrase`
      : `--tls-key ${key} has no private key in PEM`
  if (!new X509Certificate(pem.cert).checkPrivateKey(createPrivateKey(pem.key)))
    return `--tls-key ${key} is not the key of the first certificate in ${cert}, which must be the server's own`
  return fails(() => createSecureContext(pem))
    ? `--tls-cert ${cert} has a certificate that cannot be read, after the first one`
    : undefined
}

/** Reads certificate and key. Fails with the problems of the flags. */
export const readTls = (
  cert: string | undefined,
  key: string | undefined
): Result.Result<Tls | undefined, ReadonlyArray<string>> => {
  if (cert === undefined && key === undefined) return Result.succeed(undefined)
  if (cert === undefined || key === undefined)
    return Result.fail(["--tls-cert and --tls-key go together: give both or none"])
  const [certificate, secret] = [readPem("tls-cert", cert), readPem("tls-key", key)]
  if (Result.isSuccess(certificate) && Result.isSuccess(secret)) {
    const tls = { cert: certificate.success, key: secret.success }
    const problem = problemOf(tls, cert, key)
    return problem === undefined ? Result.succeed(tls) : Result.fail([problem])
  }
  return Result.fail(
    [certificate, secret].flatMap((one) => (Result.isFailure(one) ? [one.failure] : []))
  )
}

/** A certificate that ends within this time, ms, is renewed soon, unless it lasts for days alone. */
const soonMs = 7 * 86_400_000

/** Returns what is wrong at this time with a certificate that a server can use all the same. */
export const certificateWarning = (cert: string, now: number): string | undefined => {
  const { validFrom, validTo } = new X509Certificate(cert)
  const [from, to] = [Date.parse(validFrom), Date.parse(validTo)]
  if (now < from)
    return `the certificate of --tls-cert is valid from ${timeText(from)}: until then clients refuse it`
  if (now >= to)
    return `the certificate of --tls-cert ended at ${timeText(to)}: clients refuse it; renew it and start again`
  return to - now < Math.min(soonMs, (to - from) / 3)
    ? `the certificate of --tls-cert ends at ${timeText(to)}: renew it and start again before`
    : undefined
}

/** Warns of a certificate that clients refuse, or will soon. */
export const warnOfCertificate = Effect.fnUntraced(function* (tls: Tls | undefined) {
  if (tls === undefined) return
  const warning = certificateWarning(tls.cert, yield* Clock.currentTimeMillis)
  if (warning !== undefined) yield* Effect.logWarning(warning)
})
