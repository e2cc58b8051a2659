// Prints the state of every backend, or of those of some pools, a page at a time.
//
//	list [-socket PATH] [POOL...]
//
// docs/api.md says how its package spillway/v1 is generated.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	spillway "spillway-examples/spillway/v1"
)

func run(socket string, pools []string) error {
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	client := spillway.NewSpillwayClient(connection)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()

	request := &spillway.StatusRequest{Pools: pools, PageSize: 1000}
	for {
		page, err := client.Status(context.Background(), request)
		if err != nil {
			return err
		}
		for _, backend := range page.Backends {
			word := strings.ToLower(strings.TrimPrefix(backend.State.String(), "BACKEND_STATE_"))
			fmt.Fprintln(out, backend.Pool, backend.Address, word)
		}
		if page.NextPageToken == "" {
			return nil
		}
		request.PageToken = page.NextPageToken
	}
}

func main() {
	socket := flag.String("socket", "/run/spillway/spillwayd.sock", "unix socket of the daemon")
	flag.Parse()
	if err := run(*socket, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
