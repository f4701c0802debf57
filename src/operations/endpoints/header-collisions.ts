import { githubHeaderNames, identities, usualHeaderNames } from "../../domain/header-names.ts"
import type { Problem } from "../../domain/problem.ts"
import type { EndpointSettings } from "../../domain/settings/endpoint-table.ts"
import type { Stored } from "../../domain/settings/setting.ts"
import { signatureHeaderOf } from "../../endpoints/signing.ts"

/** The settings that name headers of an endpoint's requests. */
type HeaderSettings = Pick<
  Stored<EndpointSettings>,
  "forwardHeaders" | "headerNames" | "headers" | "sign" | "signatureHeader"
>

interface SentHeader {
  readonly name: string
  /** What it is, for people. */
  readonly what: string
  /** The setting that chose its name, if one did. */
  readonly field?: string
}

const sentHeaders = (settings: HeaderSettings): ReadonlyArray<SentHeader> => {
  const { forwardHeaders = [], headerNames = {}, headers, sign, signatureHeader } = settings
  const signature = signatureHeaderOf({ scheme: sign, signatureHeader })
  const github = sign === "github" ? Object.values(githubHeaderNames) : []
  return [
    ...identities.map((identity): SentHeader => {
      const name = headerNames[identity]
      const what = `the header of the ${identity}`
      return name === undefined
        ? { name: usualHeaderNames[identity], what }
        : { name, what, field: `headerNames.${identity}` }
    }),
    ...(sign === "stripe" && signatureHeader !== undefined
      ? [{ name: signatureHeader, what: "the signature header", field: "signatureHeader" }]
      : signature === undefined
        ? []
        : [{ name: signature, what: "the signature header" }]),
    ...github.map((name) => ({ name, what: "a header of GitHub style" })),
    ...Object.keys(headers).map((name) => ({ name, what: "one of its own headers" })),
    ...forwardHeaders.map((name) => ({
      ...{ name, what: "a header that is forwarded", field: "forwardHeaders" }
    }))
  ]
}

/** Returns a problem for each two headers of an endpoint's requests that have the same name. */
export const headerCollisions = (settings: HeaderSettings): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  const seen = new Map<string, SentHeader>()
  for (const header of sentHeaders(settings)) {
    const name = header.name.toLowerCase()
    const other = seen.get(name)
    seen.set(name, header)
    if (other === undefined) continue
    const [chosen, beside] = header.field === undefined ? [other, header] : [header, other]
    problems.push({
      field: chosen.field ?? "headers",
      message: `${JSON.stringify(chosen.name)} is also the name of ${beside.what}: choose another one`
    })
  }
  return problems
}
