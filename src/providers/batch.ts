import { bodyJson, eventOf, type FoundEvent, unreadable } from "./body.ts"
import { itemsOfArray } from "./json-items.ts"
import type { ProviderEvent, Reading, ReceivedRequest } from "./provider.ts"

/** What is found in one item of a batch. */
export type FoundItem = Omit<FoundEvent, "type"> & { readonly type: string | undefined }

/**
 * Items of one batch at most. SendGrid's batches are the largest, with 768 KB: no more of its items
 * fit into them. Others have some hundreds.
 */
const maxItems = 5_000

/**
 * Makes an event of each item, with the item's own bytes.
 *
 * @param bytes of each item, in the order of `items`.
 */
export const readItems = (
  items: ReadonlyArray<unknown>,
  bytes: ReadonlyArray<Uint8Array>,
  title: string,
  typeIn: string,
  find: (item: unknown) => FoundItem
): Reading => {
  if (items.length > maxItems)
    return unreadable(
      `The body has ${items.length} events, and a batch of ${title} may have ${maxItems}.`
    )
  const events: Array<ProviderEvent> = []
  for (const [place, item] of items.entries()) {
    const { type, ...others } = find(item)
    const body = bytes[place]
    if (type === undefined || body === undefined)
      return unreadable(
        `Item ${place + 1} of ${items.length} has no type: ${title} has it in ${typeIn}.`
      )
    events.push(eventOf({ ...others, type }, body, "application/json"))
  }
  return { ok: true, events }
}

/** Reads a request whose body is a JSON array, with an event in each item. */
export const readArray = (
  { body }: ReceivedRequest,
  title: string,
  typeIn: string,
  find: (item: unknown) => FoundItem
): Reading => {
  const json = bodyJson(body)
  return Array.isArray(json)
    ? readItems(json, itemsOfArray(body), title, typeIn, find)
    : unreadable(`The body is not a JSON array, as ${title} sends them.`)
}
