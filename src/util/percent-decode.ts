/** Leaves invalid UTF-8 encoded. */
export function percentDecode(text: string): string {
  if (!text.includes("%")) return text;
  return text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (encoded) => {
    try {
      return decodeURIComponent(encoded);
    } catch {
      return encoded;
    }
  });
}
