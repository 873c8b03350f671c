import { hexText } from './hex-text.js';

/** Of a key, or what ERC-1271 and ERC-6492 have. */
export const walletSignature = hexText(
  /^0x(?:[\da-fA-F]{2}){1,4096}$/,
  'must be 0x and the signature in hex',
);
