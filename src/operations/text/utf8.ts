/** Returns the body as text; undefined if it is not valid UTF-8. */
export const textOf = (body: Uint8Array): string | undefined => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body)
  } catch {
    return undefined
  }
}
