declare module 'html-encoding-sniffer' {
  export default function sniffEncoding(
    bytes: Uint8Array,
    options?: {
      xml?: boolean
      transportLayerEncodingLabel?: string
      /** The result if no encoding is declared. */
      defaultEncoding?: string
      /** How far to look for a meta element; not used for XML. */
      maxPrescanBytes?: number
    },
  ): string
}
