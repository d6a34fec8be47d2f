declare module 'html-encoding-sniffer' {
  export default function sniffEncoding(
    bytes: Uint8Array,
    options?: {
      xml?: boolean
      transportLayerEncodingLabel?: string
      /** What to answer when nothing names an encoding. */
      defaultEncoding?: string
      /** How far to look for a meta element; not in XML. */
      maxPrescanBytes?: number
    },
  ): string
}
