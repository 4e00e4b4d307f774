// SPDX-License-Identifier: Apache-2.0
// Fetches a URL with quic-go into file OUT: `quic-go [-migrate] OUT URL`.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/debug"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// Bytes of the body before the migration.
const underWay = 1_000_000

func main() {
	version := flag.Bool("version", false, "print quic-go's version")
	migrating := flag.Bool("migrate", false, "change to another port during the download")
	flag.Parse()
	if *version {
		build, _ := debug.ReadBuildInfo()
		for _, module := range build.Deps {
			if module.Path == "github.com/quic-go/quic-go" {
				fmt.Println(module.Version)
			}
		}
		return
	}
	if err := get(flag.Arg(0), flag.Arg(1), *migrating); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func get(out, url string, migrating bool) error {
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	defer file.Close()
	socket, err := net.ListenUDP("udp", nil)
	if err != nil {
		return err
	}
	// Like http3.Transport's default, but keeps the connection for the migration.
	endpoint := &quic.Transport{Conn: socket}
	var connection *quic.Conn
	transport := &http3.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		Dial: func(ctx context.Context, address string, t *tls.Config, q *quic.Config) (*quic.Conn, error) {
			server, err := net.ResolveUDPAddr("udp", address)
			if err != nil {
				return nil, err
			}
			connection, err = endpoint.DialEarly(ctx, server, t, q)
			return connection, err
		},
	}
	defer transport.Close()
	answer, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", answer.Status)
	}
	if migrating {
		if _, err := io.CopyN(file, answer.Body, underWay); err != nil {
			return err
		}
		if err := migrate(connection); err != nil {
			return fmt.Errorf("migrating: %w", err)
		}
	}
	_, err = io.Copy(file, answer.Body)
	return err
}

// migrate moves the connection to a port that the system selects (RFC 9000, section 9).
func migrate(connection *quic.Conn) error {
	socket, err := net.ListenUDP("udp", nil)
	if err != nil {
		return err
	}
	path, err := connection.AddPath(&quic.Transport{Conn: socket})
	if err != nil {
		return err
	}
	if err := path.Probe(context.Background()); err != nil {
		return err
	}
	return path.Switch()
}
