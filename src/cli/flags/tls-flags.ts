import { readFileSync } from "node:fs"
import { Result } from "effect"

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

/** Reads certificate and key. Fails with the problems of the flags. */
export const readTls = (
  cert: string | undefined,
  key: string | undefined
): Result.Result<Tls | undefined, ReadonlyArray<string>> => {
  if (cert === undefined && key === undefined) return Result.succeed(undefined)
  if (cert === undefined || key === undefined)
    return Result.fail(["--tls-cert and --tls-key go together: give both or none"])
  const [certificate, secret] = [readPem("tls-cert", cert), readPem("tls-key", key)]
  if (Result.isSuccess(certificate) && Result.isSuccess(secret))
    return Result.succeed({ cert: certificate.success, key: secret.success })
  return Result.fail(
    [certificate, secret].flatMap((one) => (Result.isFailure(one) ? [one.failure] : []))
  )
}
