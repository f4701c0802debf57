import type { Asker } from "./caller.ts"

/** True for who may see what receivers answered: it may repeat what they were sent. */
export const maySeeAnswers = ({ scopes }: Pick<Asker, "scopes">): boolean =>
  scopes.includes("payloads:read")

/**
 * Removes from the record of an attempt what its receiver said, and where it led to. Messages of
 * errors have nothing of it (`endpoints/target.ts`).
 */
export const withoutAnswer = <A extends object>(
  record: A & { readonly redirects?: unknown; readonly response?: unknown }
) => {
  const { redirects: _, response: __, ...rest } = record
  return rest
}
