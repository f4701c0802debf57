import { Result } from "effect"
import { isToken } from "../../../domain/token.ts"
import { bothReaches, parseNetwork, type Reach } from "../../../policy/address.ts"

/**
 * The destinations that a worker's requests may reach: for all tenants, and additional ones by
 * tenant.
 */
export interface WorkerReach {
  readonly everyone: Reach
  readonly tenants: ReadonlyMap<string, Reach>
}

const nothing: Reach = { networks: [], ports: [] }

/** `acme=10.0.0.0/8` applies to that tenant, `10.0.0.0/8` to all. */
const divided = (text: string): { readonly tenant: string | undefined; readonly value: string } => {
  const at = text.indexOf("=")
  return at < 0
    ? { tenant: undefined, value: text }
    : { tenant: text.slice(0, at), value: text.slice(at + 1) }
}

const readNetwork = (text: string): Result.Result<Reach, string> =>
  Result.mapBoth(parseNetwork(text), {
    onSuccess: (network) => ({ ...nothing, networks: [network] }),
    onFailure: ({ message }) => message
  })

const readPort = (text: string): Result.Result<Reach, string> => {
  if (text === "any") return Result.succeed({ ...nothing, ports: "any" })
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  return port >= 1 && port <= 65_535
    ? Result.succeed({ ...nothing, ports: [port] })
    : Result.fail(`${JSON.stringify(text)} must be a port from 1 to 65535, or any`)
}

/**
 * Parses `--allow-network` and `--allow-port`. Fails with the problems of all invalid values.
 *
 * @param networks as `CIDR` or `TENANT=CIDR`.
 * @param ports as `PORT` or `any`, optionally prefixed with `TENANT=`.
 */
export const readReach = (
  networks: ReadonlyArray<string>,
  ports: ReadonlyArray<string>
): Result.Result<WorkerReach, ReadonlyArray<string>> => {
  const problems: Array<string> = []
  const tenants = new Map<string, Reach>()
  let everyone = nothing
  const take = (
    flag: string,
    text: string,
    read: (value: string) => Result.Result<Reach, string>
  ) => {
    const { tenant, value } = divided(text)
    if (tenant !== undefined && !isToken(tenant)) {
      problems.push(
        `${flag} ${JSON.stringify(text)} must name a tenant before the =: 1 to 64 letters, digits, - or _ (and not a lone _)`
      )
      return
    }
    const reach = read(value)
    if (Result.isFailure(reach)) problems.push(`${flag} ${reach.failure}`)
    else if (tenant === undefined) everyone = bothReaches(everyone, reach.success)
    else tenants.set(tenant, bothReaches(tenants.get(tenant) ?? nothing, reach.success))
  }
  for (const text of networks) take("--allow-network", text, readNetwork)
  for (const text of ports) take("--allow-port", text, readPort)
  return problems.length === 0 ? Result.succeed({ everyone, tenants }) : Result.fail(problems)
}
