// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  // The content security policy permits neither inline scripts nor inline files.
  build: { target: "es2022", modulePreload: { polyfill: false }, assetsInlineLimit: 0, reportCompressedSize: false },
});
