import { hexText } from './hex-text.js';

/** A signature: 65 bytes of a key, or an ERC-1271 or ERC-6492 signature. */
export const walletSignature = hexText(
  /^0x(?:[\da-fA-F]{2}){1,4096}$/,
  'must be 0x and the signature in hex',
);
