import { plainText } from "../../../history/line.ts"
import { nearestName } from "../../../policy/nearest-name.ts"
import { countText, plural } from "../../text/number-format.ts"
import { moment } from "../../text/time.ts"
import type { Check } from "./check.ts"
import type { Findings, TypeCount } from "./findings.ts"

/** Types that are named in the text. */
const maxNamed = 3

const listed = (types: ReadonlyArray<TypeCount>): string =>
  types
    .toSorted((one, other) => other.count - one.count)
    .slice(0, maxNamed)
    .map(({ count, type }) => `${plainText(type)} (${countText(count)})`)
    .join(", ")

/** Returns a published type that a filter may have meant. */
const meant = (filters: ReadonlyArray<string>, types: ReadonlyArray<TypeCount>) => {
  const published = types.map(({ type }) => type)
  for (const filter of filters) {
    const wanted = filter.replace(/\.[*>]$/, "")
    const near =
      nearestName(wanted, published) ??
      published.find((type) => nearestName(wanted, [type.split(".")[0] ?? type]) !== undefined)
    if (near !== undefined) return { filter, near }
  }
  return undefined
}

/** Checks whether the tenant publishes anything that the endpoint's filters match. */
export const subscriptionCheck = (
  { endpoint: { id, tenant, types: filters }, subscription: { matchedAt, types } }: Findings,
  now: number
): Check => {
  const matching = types.filter(({ isMatched }) => isMatched)
  const sum = matching.reduce((all, { count }) => all + count, 0)
  const wanted = filters.length === 1 && filters[0] === ">" ? "all types" : filters.join(", ")
  if (types.length === 0)
    return {
      name: "events",
      result: "warning",
      says: `the stream holds no event of ${tenant}`,
      advice: `Publish one (\`petrel publish ${tenant} TYPE\`). If you do publish, look at the subject: it must be events.${tenant}.<type>.`
    }
  if (matching.length > 0)
    return {
      name: "events",
      result: "ok",
      says: `${plural(sum, "stored event")} of ${tenant} ${sum === 1 ? "matches" : "match"} ${wanted}${matchedAt === undefined ? "" : `, the latest from ${moment(matchedAt, now)}`}`
    }
  const near = meant(filters, types)
  return {
    name: "events",
    result: "problem",
    says: `none of the ${plural(types.length, "stored event type")} of ${tenant} matches ${wanted}; published are ${listed(types)}`,
    advice:
      near === undefined
        ? `Subscribe it to what is published (\`petrel endpoint set ${tenant}/${id} --types '${types[0]?.type ?? ">"}'\`).`
        : `Did ${near.filter} mean ${plainText(near.near)}? Then set its \`types\` (\`petrel endpoint set ${tenant}/${id} --types TYPES\`).`
  }
}
